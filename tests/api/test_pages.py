"""The pages that a browser asks for."""

import httpx
import pytest

from support.checks import check_error


@pytest.mark.parametrize("page", ["/docs", "/openapi.json"])
@pytest.mark.parametrize("way", ["/../../etc/passwd", "/..%2f..%2fetc/passwd", "/%2e%2e/app.py", ".html", "%00", "/"])
async def test_no_file_can_be_reached_through_a_page(client: httpx.AsyncClient, page: str, way: str) -> None:
    check_error(await client.get(page + way), 404, None)


@pytest.mark.parametrize("page", ["/", "/docs", "/openapi.json"])
async def test_a_page_has_no_parts_however_many_are_asked_for(client: httpx.AsyncClient, page: str) -> None:
    ranges = "bytes=" + ",".join(f"{number}-{number}" for number in range(100_000))
    response = await client.get(page, headers={"range": ranges})
    assert response.status_code == 200
    assert response.content == (await client.get(page)).content
