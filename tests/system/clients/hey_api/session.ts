// The session of test_generated_clients.py with the client of @hey-api/openapi-ts.
import * as api from "./generated";
import { createClient, createConfig } from "./generated/client";

const { BASE_URL = "", API_KEY = "", LIMITED_API_KEY = "", PLAN_MANAGER_ID = "", ACCOUNT_MANAGER_IDS = "" } = process.env;

function newClient(key: string) {
  const auth = (scheme: { type: string }) => (scheme.type === "http" ? key : PLAN_MANAGER_ID);
  return createClient(createConfig({ baseUrl: BASE_URL, auth }));
}

type Result<Data> = { data?: Data; error?: { error: string }; response?: Response };

function expectData<Data>(result: Result<Data>): Data {
  if (result.data === undefined) throw new Error(JSON.stringify(result.error));
  return result.data;
}

function errorCode(result: Result<unknown>): [number | undefined, string] {
  if (result.error === undefined) throw new Error(`The status is ${result.response?.status}.`);
  return [result.response?.status, result.error.error];
}

async function main() {
  const client = newClient(API_KEY);

  const pages: (string | null)[][] = [];
  let after: string | null = "0";
  while (after !== null) {
    const page: api.ParticipantPage = expectData(await api.participantsList({ client, query: { limit: 2, after } }));
    pages.push(page.data.map((each) => each.first_name));
    after = page.pagination.next_cursor;
  }
  const query = { account_manager: ACCOUNT_MANAGER_IDS };
  const found = expectData(await api.participantsList({ client, query }));

  const body = { first_name: "Nora", last_name: "Whitlock", plan_start_date: "2026-07-01" };
  const created = expectData(await api.participantsCreate({ client, body }));
  const path = { participant_id: created.id };
  const full = expectData(await api.participantsGet({ client, path }));

  const etag = (await api.participantsGet({ client, path })).response?.headers.get("ETag") ?? "";
  const update = { client, path, headers: { "If-Match": etag }, body: { last_name: "Marsh" } };
  const updated = expectData(await api.participantsUpdate(update));
  const stale = await api.participantsUpdate(update);

  expectData(await api.teamMembersCreate({ client, path, body: { first_name: "Isla", contact_priority: 1 } }));
  const second = expectData(await api.teamMembersCreate({ client, path, body: { first_name: "Ravi" } }));
  const memberPath = { ...path, team_member_id: second.id };
  const conflict = await api.teamMembersUpdate({ client, path: memberPath, body: { contact_priority: 1 } });

  const limitedClient = newClient(LIMITED_API_KEY);
  let limited = await api.accountManagersList({ client: limitedClient });
  while (limited.data !== undefined) limited = await api.accountManagersList({ client: limitedClient });

  expectData(await api.participantsDelete({ client, path }));
  const deleted = await api.participantsGet({ client, path });

  let events: string[] = [];
  while (!events.includes("participant.deleted")) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    const feed = await api.eventsList({ client, query: { resource_id: created.id } });
    events = expectData(feed).data.map((each) => each.type);
  }

  const summary = {
    pages,
    filtered: found.data.map((each) => each.first_name),
    full: [full.first_name, full.plan_start_date],
    updated: [updated.first_name, updated.last_name],
    stale: errorCode(stale),
    conflict: errorCode(conflict),
    limited: [...errorCode(limited), Number(limited.response?.headers.get("Retry-After")) > 0],
    deleted: errorCode(deleted),
    events,
  };
  console.log(JSON.stringify(summary));
}

main();
