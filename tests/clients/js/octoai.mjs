// node octoai.mjs '{"url", "model", "prompt", "message", "maxTokens"}': the same greedy answers in four ways, as JSON.
import sdk from "@octoai/sdk";

const { url, model, prompt, message, maxTokens } = JSON.parse(process.argv[2]);
const { textGen } = new sdk.OctoAIClient({
  apiKey: "any",
  environment: { default: url, imageGen: url, textGen: url },
});
const common = { model, temperature: 0, maxTokens };
const completion = { ...common, prompt };
const chat = { ...common, messages: [{ role: "user", content: message }] };

async function joined(stream, textOf) {
  let text = "";
  let finishReason = null;
  let numChunks = 0;
  for await (const chunk of stream) {
    const [choice] = chunk.choices;
    text += textOf(choice) ?? "";
    finishReason = choice.finishReason ?? finishReason;
    numChunks += 1;
  }
  return { text, finishReason, numChunks };
}

function whole(answer, text) {
  return { text, finishReason: answer.choices[0].finishReason, usage: answer.usage };
}

async function failure(call) {
  try {
    await call();
    return null;
  } catch (error) {
    return { name: error.constructor.name, status: error.statusCode };
  }
}

const completed = await textGen.createCompletion(completion);
const chatted = await textGen.createChatCompletion(chat);
console.log(
  JSON.stringify({
    completion: whole(completed, completed.choices[0].text),
    completionStream: await joined(await textGen.createCompletionStream(completion), (choice) => choice.text),
    chat: whole(chatted, chatted.choices[0].message.content),
    chatStream: await joined(await textGen.createChatCompletionStream(chat), (choice) => choice.delta.content),
    unknownModel: await failure(() => textGen.createCompletion({ ...completion, model: "nobody" })),
    badValue: await failure(() => textGen.createCompletion({ ...completion, temperature: 3 })),
  }),
);
