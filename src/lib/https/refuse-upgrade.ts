/** Answers an upgrade request with an ordinary response, for which Node.js offers no ServerResponse. */
import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';

interface UpgradeRefusal {
  readonly status: number;
  readonly contentType: string;
  readonly body: Buffer;
}

/** Sends the response and closes the connection. */
export function refuseUpgrade(socket: Duplex, { status, contentType, body }: UpgradeRefusal): void {
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    `Content-Type: ${contentType}`,
    `Content-Length: ${body.length}`,
    'Connection: close',
  ];
  socket.end(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), body]));
}
