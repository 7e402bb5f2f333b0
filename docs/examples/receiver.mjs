// A receiver of webhooks: it verifies each message, stores it once, and responds.

import { createServer } from "node:http";
import { Webhook } from "standardwebhooks";

const webhook = new Webhook(process.env.WEBHOOK_SECRET);
const kept = new Map(); // in yours: a table with the message's id as its key

// Ignore messages that were sent again. Process events after the response.
function keep(messageId, event) {
  if (kept.has(messageId)) return;
  kept.set(messageId, event);
  console.log(messageId, event.type, event.data.resource.id);
}

function receive(body, headers) {
  let event;
  try {
    event = webhook.verify(body, headers);
  } catch {
    return 401;
  }
  keep(headers["webhook-id"], event);
  return 204;
}

const server = createServer((request, response) => {
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => response.writeHead(receive(Buffer.concat(chunks), request.headers)).end());
});
server.listen(Number(process.argv[2]), "127.0.0.1", () => console.log(`Listening on port ${server.address().port}`));
