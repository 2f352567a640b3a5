/** Encodes a user in the request headers that aggregated API servers trust with our client certificate. Pure. */
import { REMOTE_EXTRA_PREFIX, REMOTE_GROUP, REMOTE_UID, REMOTE_USER } from '#engine/auth/front-proxy.ts';
import type { UserInfo } from '#engine/request/request.ts';

export function identityHeaders({ name, uid, groups, extra = {} }: UserInfo): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = { [REMOTE_USER]: bytesOf(name) };
  if (uid !== undefined && uid !== '') headers[REMOTE_UID] = bytesOf(uid);
  if (groups.length > 0) headers[REMOTE_GROUP] = groups.map(bytesOf);
  for (const [key, values] of Object.entries(extra)) {
    if (values.length > 0) headers[REMOTE_EXTRA_PREFIX + escapeKey(key)] = values.map(bytesOf);
  }
  return headers;
}

/** Go sends raw UTF-8; node expects one character for each byte. */
const bytesOf = (text: string) => Buffer.from(text, 'utf8').toString('latin1');

const TOKEN = /[!#$&'*+\-.^_`|~0-9A-Za-z]/;

/** Escapes a key: keys are often URLs, and header names allow few characters. */
function escapeKey(key: string): string {
  let out = '';
  for (const byte of Buffer.from(key, 'utf8')) {
    const character = String.fromCharCode(byte);
    out += TOKEN.test(character) ? character : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return out;
}
