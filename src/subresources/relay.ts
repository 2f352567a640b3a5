/** Relays bytes between the WebSocket of a client and that of a node, without interpreting frames, pings or closes. */
import type { Duplex } from 'node:stream';
import type { SubresourceUpgrade } from '#subresources/http-types.ts';
import type { NodeUpgrade } from '#subresources/node-connections.ts';

const KEEP_ALIVE_MS = 30_000;
/** The time for one side to read the last bytes of the other. */
const LINGER_MS = 5000;

export function relayNodeUpgrade({ responseHead, connection: node, head: nodeHead }: NodeUpgrade): SubresourceUpgrade {
  return {
    status: 101,
    takeOver(client, head) {
      client.on('error', () => {});
      client.write(responseHead);
      if (nodeHead.length > 0) client.write(nodeHead);
      if (head.length > 0) node.write(head);
      client.pipe(node);
      node.pipe(client);
      client.once('close', () => finish(node));
      node.once('close', () => finish(client));
      // A console may be silent for days: only TCP keep-alive detects that the other side is gone.
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
