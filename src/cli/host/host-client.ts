/** Calls of the host API over the local socket of a node. */
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { request } from 'node:http';
import { HOST_SOCKET, hostPath, type HostAnswer, type HostVerb } from '#api/host-api.ts';
import { CommandError } from '#cli/flags.ts';
import { isRecord } from '#kube/meta.ts';

const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

/** `dir` is the directory of the node. Throws CommandError where nobody answers. */
export async function callHost(
  dir: string,
  verb: HostVerb,
  parameters: Readonly<Record<string, unknown>>,
): Promise<HostAnswer> {
  // Through the open directory: the path of a socket may not be longer than 107 bytes.
  const directory = await open(dir, constants.O_RDONLY | constants.O_DIRECTORY).catch(cannotReach(dir));
  try {
    const socketPath = `/proc/self/fd/${directory.fd}/${HOST_SOCKET}`;
    const { code, text } = await post(socketPath, hostPath(verb), JSON.stringify(parameters)).catch(cannotReach(dir));
    const answer = parsed(text);
    if (code === 200 && isRecord(answer) && isRecord(answer['status'])) return answer as unknown as HostAnswer;
    const told = isRecord(answer) && typeof answer['message'] === 'string' ? answer['message'] : text.slice(0, 500);
    throw new CommandError(`${code} ${told}`);
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
    // A connection of its own: the next directory may have the same number.
    const asked = request({ socketPath, path, method: 'POST', headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > MAX_ANSWER_BYTES) response.destroy(new Error('the response is too large'));
        chunks.push(chunk);
      });
      response.on('error', reject);
      response.on('end', () =>
        resolve({ code: response.statusCode ?? 0, text: Buffer.concat(chunks).toString('utf8') }),
      );
    });
    asked.on('error', reject).end(body);
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
