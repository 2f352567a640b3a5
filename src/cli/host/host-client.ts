/** Calls the host API over the local socket of a node. */
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { request } from 'node:http';
import { HOST_SOCKET, hostPath, type HostAnswer, type HostVerb } from '#api/host-api.ts';
import { CommandError } from '#lib/command-line/command-error.ts';
import { isRecord } from '#kube/meta.ts';

const MAX_RESPONSE_BYTES = 64 * 1024 * 1024;

/** `dir` is the directory of the node. Throws CommandError if the node does not respond or refuses. */
export async function callHost(
  dir: string,
  verb: HostVerb,
  parameters: Readonly<Record<string, unknown>>,
): Promise<HostAnswer> {
  // Uses the open directory, because the path of a socket is limited to 107 bytes.
  const directory = await open(dir, constants.O_RDONLY | constants.O_DIRECTORY).catch(cannotReach(dir));
  try {
    const socketPath = `/proc/self/fd/${directory.fd}/${HOST_SOCKET}`;
    const { code, text } = await post(socketPath, hostPath(verb), JSON.stringify(parameters)).catch(cannotReach(dir));
    const response = parseJson(text);
    if (code === 200 && isRecord(response) && isRecord(response['status'])) return response as unknown as HostAnswer;
    const message =
      isRecord(response) && typeof response['message'] === 'string' ? response['message'] : text.slice(0, 500);
    throw new CommandError(`${code} ${message}`);
  } finally {
    await directory.close();
  }
}

function cannotReach(dir: string): (error: unknown) => never {
  return (error) => {
    const { code } = error as NodeJS.ErrnoException;
    const why =
      code === 'EACCES' || code === 'EPERM'
        ? 'this user has no permission to open its socket'
        : code === 'ENOENT' || code === 'ECONNREFUSED' || code === 'ENOTDIR'
          ? 'no agent is running; start it with selfsame up'
          : (error as Error).message;
    throw new CommandError(`Cannot reach the node in ${dir}: ${why}`);
  };
}

function post(socketPath: string, path: string, body: string): Promise<{ code: number; text: string }> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
    // A new connection each time, because the file descriptor of another directory may have the same number.
    const outgoing = request({ socketPath, path, method: 'POST', headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > MAX_RESPONSE_BYTES) response.destroy(new Error('the response is too large'));
        chunks.push(chunk);
      });
      response.on('error', reject);
      response.on('end', () =>
        resolve({ code: response.statusCode ?? 0, text: Buffer.concat(chunks).toString('utf8') }),
      );
    });
    outgoing.on('error', reject).end(body);
  });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
