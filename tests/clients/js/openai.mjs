// node openai.mjs '{"url", "model", "prompt", "message", "maxTokens"}': the same greedy answers in four ways, as JSON.
import OpenAI from "openai";

const { url, model, prompt, message, maxTokens } = JSON.parse(process.argv[2]);
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "any", maxRetries: 0 });
const common = { model, temperature: 0, max_tokens: maxTokens };
const completion = { ...common, prompt };
const chat = { ...common, messages: [{ role: "user", content: message }] };
const streamed = { stream: true, stream_options: { include_usage: true } };

async function joined(stream, textOf) {
  let text = "";
  let finishReason = null;
  let numChunks = 0;
  let usage = null;
  for await (const chunk of stream) {
    for (const choice of chunk.choices) {
      text += textOf(choice) ?? "";
      finishReason = choice.finish_reason ?? finishReason;
    }
    usage = chunk.usage ?? usage;
    numChunks += 1;
  }
  return { text, finishReason, numChunks, usage: named(usage) };
}

function whole(answer, text) {
  return { text, finishReason: answer.choices[0].finish_reason, usage: named(answer.usage) };
}

function named(usage) {
  return {
    promptTokens: usage.prompt_tokens,
    completionTokens: usage.completion_tokens,
    totalTokens: usage.total_tokens,
  };
}

async function failure(call) {
  try {
    await call();
    return null;
  } catch (error) {
    return { name: error.constructor.name, status: error.status };
  }
}

const completed = await client.completions.create(completion);
const chatted = await client.chat.completions.create(chat);
console.log(
  JSON.stringify({
    completion: whole(completed, completed.choices[0].text),
    completionStream: await joined(
      await client.completions.create({ ...completion, ...streamed }),
      (choice) => choice.text,
    ),
    chat: whole(chatted, chatted.choices[0].message.content),
    chatStream: await joined(
      await client.chat.completions.create({ ...chat, ...streamed }),
      (choice) => choice.delta.content,
    ),
    unknownModel: await failure(() => client.completions.create({ ...completion, model: "nobody" })),
    badValue: await failure(() => client.completions.create({ ...completion, temperature: 3 })),
  }),
);
