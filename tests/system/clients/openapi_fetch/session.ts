// The session of test_generated_clients.py with the types of openapi-typescript and openapi-fetch.
import createClient from "openapi-fetch";
import type { paths } from "./generated/schema.js";

const { BASE_URL = "", API_KEY = "", LIMITED_API_KEY = "", PLAN_MANAGER_ID = "", ACCOUNT_MANAGER_IDS = "" } = process.env;

function newClient(key: string) {
  const headers = { Authorization: `Bearer ${key}`, "X-Plan-Manager-Id": PLAN_MANAGER_ID };
  return createClient<paths>({ baseUrl: BASE_URL, headers });
}

type Result<Data> = { data?: Data; error?: { error: string }; response: Response };

function expectData<Data>(result: Result<Data>): Data {
  if (result.data === undefined) throw new Error(JSON.stringify(result.error));
  return result.data;
}

function errorCode(result: Result<unknown>): [number, string] {
  if (result.error === undefined) throw new Error(`The status is ${result.response.status}.`);
  return [result.response.status, result.error.error];
}

const PARTICIPANTS = "/api/public/v1/participants";
const PARTICIPANT = "/api/public/v1/participants/{participant_id}";
const TEAM = "/api/public/v1/participants/{participant_id}/team-members";
const TEAM_MEMBER = "/api/public/v1/participants/{participant_id}/team-members/{team_member_id}";

async function main() {
  const client = newClient(API_KEY);

  const pages: (string | null)[][] = [];
  let after: string | null = "0";
  while (after !== null) {
    const page: { data: { first_name: string | null }[]; pagination: { next_cursor: string | null } } = expectData(
      await client.GET(PARTICIPANTS, { params: { query: { limit: 2, after } } }),
    );
    pages.push(page.data.map((each) => each.first_name));
    after = page.pagination.next_cursor;
  }
  const query = { account_manager: ACCOUNT_MANAGER_IDS };
  const found = expectData(await client.GET(PARTICIPANTS, { params: { query } }));

  const body = { first_name: "Nora", last_name: "Whitlock", plan_start_date: "2026-07-01" };
  const created = expectData(await client.POST(PARTICIPANTS, { body }));
  const path = { participant_id: created.id };
  const full = expectData(await client.GET(PARTICIPANT, { params: { path } }));

  const etag = (await client.GET(PARTICIPANT, { params: { path } })).response.headers.get("ETag") ?? "";
  const update = { params: { path, header: { "If-Match": etag } }, body: { last_name: "Marsh" } };
  const updated = expectData(await client.PUT(PARTICIPANT, update));
  const stale = await client.PUT(PARTICIPANT, update);

  expectData(await client.POST(TEAM, { params: { path }, body: { first_name: "Isla", contact_priority: 1 } }));
  const second = expectData(await client.POST(TEAM, { params: { path }, body: { first_name: "Ravi" } }));
  const memberPath = { ...path, team_member_id: second.id };
  const conflict = await client.PUT(TEAM_MEMBER, { params: { path: memberPath }, body: { contact_priority: 1 } });

  const limitedClient = newClient(LIMITED_API_KEY);
  let limited = await limitedClient.GET("/api/public/v1/account-managers");
  while (limited.data !== undefined) limited = await limitedClient.GET("/api/public/v1/account-managers");

  expectData(await client.DELETE(PARTICIPANT, { params: { path } }));
  const deleted = await client.GET(PARTICIPANT, { params: { path } });

  let events: string[] = [];
  while (!events.includes("participant.deleted")) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    const feed = await client.GET("/api/public/v1/events", { params: { query: { resource_id: created.id } } });
    events = expectData(feed).data.map((each) => each.type);
  }

  const summary = {
    pages,
    filtered: found.data.map((each) => each.first_name),
    full: [full.first_name, full.plan_start_date],
    updated: [updated.first_name, updated.last_name],
    stale: errorCode(stale),
    conflict: errorCode(conflict),
    limited: [...errorCode(limited), Number(limited.response.headers.get("Retry-After")) > 0],
    deleted: errorCode(deleted),
    events,
  };
  console.log(JSON.stringify(summary));
}

main();
