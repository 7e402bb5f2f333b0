"""The parameters that every list of stored resources has."""

from support.client import Client


def check_list(client: Client, path: str) -> None:
    """A list of at least two items has `id`, `updated_since` and `sort`, alone and with a cursor."""

    def ids(**params: object) -> list[str]:
        response = client.get(path, **params)
        assert response.status_code == 200, response.text
        return [each["id"] for each in response.json()["data"]]

    items = client.get(path).json()["data"]
    every = [each["id"] for each in items]
    assert len(every) > 1
    assert every == sorted(every)
    assert ids(id=every[0]) == every[:1]
    assert ids(sort="-id") == every[::-1]
    by_time = [each["id"] for each in sorted(items, key=lambda each: (each["updated_at"], each["id"]))]
    assert ids(sort="updated_at") == by_time
    first = client.get(path, sort="-updated_at", limit=1, after="0").json()
    assert [each["id"] for each in first["data"]] == by_time[-1:]
    rest = ids(sort="-updated_at", after=first["pagination"]["next_cursor"])
    assert rest == by_time[-2::-1]
    latest = max(each["updated_at"] for each in items)
    assert ids(updated_since=latest) == [each["id"] for each in items if each["updated_at"] == latest]
    assert ids(updated_since="2999-01-01T00:00:00Z") == []
    found = client.get(path, updated_since=latest).json()["pagination"]["total"]
    assert found == len(ids(updated_since=latest))
    assert "synced-until" in client.get(path).headers
    for name, wrong, field in (("id", "x", "id[0]"), ("sort", "name", "sort"), ("updated_since", "x", "updated_since")):
        rejected = client.get(path, **{name: wrong})
        assert (rejected.status_code, [each["field"] for each in rejected.json()["errors"]]) == (400, [field])
