// The session of test_generated_clients.py with the client of orval, which sends its requests with axios.
import axios, { AxiosError } from "axios";
import * as api from "./generated/client";

const { BASE_URL = "", API_KEY = "", LIMITED_API_KEY = "", PLAN_MANAGER_ID = "", ACCOUNT_MANAGER_IDS = "" } = process.env;

axios.defaults.baseURL = BASE_URL;
axios.defaults.headers.common["X-Plan-Manager-Id"] = PLAN_MANAGER_ID;
axios.defaults.headers.common["Authorization"] = `Bearer ${API_KEY}`;

async function expectError(request: Promise<unknown>): Promise<[number | undefined, string | undefined, string]> {
  try {
    await request;
  } catch (error) {
    if (!(error instanceof AxiosError)) throw error;
    const { response }: AxiosError<api.Error> = error;
    return [response?.status, response?.data.error, String(response?.headers["retry-after"])];
  }
  throw new Error("The request succeeded.");
}

async function listAccountManagersUntilLimited(): Promise<never> {
  for (;;) await api.accountManagersList({}, { headers: { Authorization: `Bearer ${LIMITED_API_KEY}` } });
}

async function main() {
  const pages: (string | null)[][] = [];
  let after: string | null = "0";
  while (after !== null) {
    const page: api.ParticipantPage = (await api.participantsList({ limit: 2, after })).data;
    pages.push(page.data.map((each) => each.first_name));
    after = page.pagination.next_cursor;
  }
  const found = await api.participantsList({ account_manager: ACCOUNT_MANAGER_IDS });

  const body = { first_name: "Nora", last_name: "Whitlock", plan_start_date: "2026-07-01" };
  const { id } = (await api.participantsCreate(body)).data;
  const full = (await api.participantsGet(id)).data;

  const headers = { "If-Match": String((await api.participantsGet(id)).headers["etag"]) };
  const change = { last_name: "Marsh" };
  const updated = (await api.participantsUpdate(id, change, { headers })).data;
  const [...stale] = await expectError(api.participantsUpdate(id, change, { headers }));

  await api.teamMembersCreate(id, { first_name: "Isla", contact_priority: 1 });
  const second = (await api.teamMembersCreate(id, { first_name: "Ravi" })).data;
  const conflict = await expectError(api.teamMembersUpdate(id, second.id, { contact_priority: 1 }));

  const limited = await expectError(listAccountManagersUntilLimited());

  await api.participantsDelete(id);
  const deleted = await expectError(api.participantsGet(id));

  let events: string[] = [];
  while (!events.includes("participant.deleted")) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    events = (await api.eventsList({ resource_id: id })).data.data.map((each) => each.type);
  }

  const summary = {
    pages,
    filtered: found.data.data.map((each) => each.first_name),
    full: [full.first_name, full.plan_start_date],
    updated: [updated.first_name, updated.last_name],
    stale: stale.slice(0, 2),
    conflict: conflict.slice(0, 2),
    limited: [limited[0], limited[1], Number(limited[2]) > 0],
    deleted: deleted.slice(0, 2),
    events,
  };
  console.log(JSON.stringify(summary));
}

main();
