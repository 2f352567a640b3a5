/** What the node is told besides the verb when somebody asks for a way into a guest. Pure; throws 400. */
import type { Verb } from '#api/can.ts';
import { badRequest } from '#kube/api-error.ts';
import type { Forward } from '#subresources/route.ts';

/** What follows the verb in the path of the node's endpoint. */
export function belowVerb(verb: Verb, query: URLSearchParams, forward: Forward | undefined): string {
  switch (verb) {
    case 'vnc':
      return isTrue(query, 'preserveSession') ? '?preserveSession=true' : '';
    case 'vnc/screenshot':
      return isTrue(query, 'moveCursor') ? '?moveCursor=true' : '';
    default:
      return forward === undefined ? '' : `/${forward.port}/${forward.protocol}`;
  }
}

const TRUE: ReadonlySet<string> = new Set(['1', 't', 'T', 'true', 'TRUE', 'True']);
const FALSE: ReadonlySet<string> = new Set(['', '0', 'f', 'F', 'false', 'FALSE', 'False']);

/** As Go reads it, of which KubeVirt's clients are. */
function isTrue(query: URLSearchParams, name: string): boolean {
  const text = query.get(name) ?? '';
  if (TRUE.has(text)) return true;
  if (FALSE.has(text)) return false;
  throw badRequest(`${name} is ${JSON.stringify(text)}; expected true or false`);
}
