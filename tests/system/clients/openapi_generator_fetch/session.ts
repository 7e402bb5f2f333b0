// The session of test_generated_clients.py with the client of openapi-generator for TypeScript and fetch.
import {
  AccountManagersApi,
  Configuration,
  EventsApi,
  ParticipantsApi,
  ResponseError,
  TeamMembersApi,
} from "./generated";

const { BASE_URL = "", API_KEY = "", LIMITED_API_KEY = "", PLAN_MANAGER_ID = "", ACCOUNT_MANAGER_IDS = "" } = process.env;

function configuration(key: string) {
  return new Configuration({ basePath: BASE_URL, accessToken: key, apiKey: PLAN_MANAGER_ID });
}

async function expectError(request: Promise<unknown>): Promise<[number, string, string | null]> {
  try {
    await request;
  } catch (error) {
    if (!(error instanceof ResponseError)) throw error;
    const body: { error: string } = await error.response.json();
    return [error.response.status, body.error, error.response.headers.get("Retry-After")];
  }
  throw new Error("The request succeeded.");
}

async function listAccountManagersUntilLimited(): Promise<never> {
  const limited = new AccountManagersApi(configuration(LIMITED_API_KEY));
  for (;;) await limited.accountManagersList();
}

async function main() {
  const participants = new ParticipantsApi(configuration(API_KEY));
  const teamMembers = new TeamMembersApi(configuration(API_KEY));

  const pages: (string | null)[][] = [];
  let after: string | null = "0";
  while (after !== null) {
    const page = await participants.participantsList({ limit: 2, after });
    pages.push(page.data.map((each) => each.firstName));
    after = page.pagination.nextCursor;
  }
  const found = await participants.participantsList({ accountManager: ACCOUNT_MANAGER_IDS });

  const participantCreate = { firstName: "Nora", lastName: "Whitlock", planStartDate: new Date("2026-07-01") };
  const { id } = await participants.participantsCreate({ participantCreate });
  const full = await participants.participantsGet({ participantId: id });

  const etag = (await participants.participantsGetRaw({ participantId: id })).raw.headers.get("ETag") ?? "";
  const update = { participantId: id, ifMatch: etag, participantUpdate: { lastName: "Marsh" } };
  const updated = await participants.participantsUpdate(update);
  const stale = await expectError(participants.participantsUpdate(update));

  await teamMembers.teamMembersCreate({
    participantId: id,
    teamMemberCreate: { firstName: "Isla", contactPriority: 1 },
  });
  const second = await teamMembers.teamMembersCreate({ participantId: id, teamMemberCreate: { firstName: "Ravi" } });
  const primary = { participantId: id, teamMemberId: second.id, teamMemberUpdate: { contactPriority: 1 as const } };
  const conflict = await expectError(teamMembers.teamMembersUpdate(primary));

  const limited = await expectError(listAccountManagersUntilLimited());

  await participants.participantsDelete({ participantId: id });
  const deleted = await expectError(participants.participantsGet({ participantId: id }));

  const feed = new EventsApi(configuration(API_KEY));
  let events: string[] = [];
  while (!events.includes("participant.deleted")) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    events = (await feed.eventsList({ resourceId: id })).data.map((each) => each.type);
  }

  const summary = {
    pages,
    filtered: found.data.map((each) => each.firstName),
    full: [full.firstName, full.planStartDate?.toISOString().slice(0, 10)],
    updated: [updated.firstName, updated.lastName],
    stale: stale.slice(0, 2),
    conflict: conflict.slice(0, 2),
    limited: [limited[0], limited[1], Number(limited[2]) > 0],
    deleted: deleted.slice(0, 2),
    events,
  };
  console.log(JSON.stringify(summary));
}

main();
