/** A client's WebSocket and the node's, joined as bytes: frames, pings and closes are between the two of them. */
import type { Duplex } from 'node:stream';
import type { UpgradeAnswer } from '#subresources/http-types.ts';
import type { NodeUpgrade } from '#subresources/node-connections.ts';

const KEEP_ALIVE_MS = 30_000;
/** For one side to read what the other wrote last. */
const LINGER_MS = 5000;

export function relayUpgrade({ answer, connection: node, head: sent }: NodeUpgrade): UpgradeAnswer {
  return {
    status: 101,
    takeOver(client, head) {
      client.on('error', () => {});
      client.write(answer);
      if (sent.length > 0) client.write(sent);
      if (head.length > 0) node.write(head);
      client.pipe(node);
      node.pipe(client);
      client.once('close', () => finish(node));
      node.once('close', () => finish(client));
      // A console may be silent for days: only the system can tell that the other side is gone.
      for (const side of [client, node] as { setKeepAlive?(on: boolean, ms: number): void }[]) {
        side.setKeepAlive?.(true, KEEP_ALIVE_MS);
      }
      if (client.destroyed) finish(node);
      if (node.destroyed) finish(client);
    },
  };
}

function finish(side: Duplex): void {
  if (side.destroyed) return;
  if (side.writableFinished) {
    side.destroy();
    return;
  }
  const timer = setTimeout(() => side.destroy(), LINGER_MS);
  timer.unref();
  side.once('close', () => clearTimeout(timer));
  side.once('finish', () => side.destroy());
  if (!side.writableEnded) side.end();
}
