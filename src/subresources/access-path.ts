/** Builds the options of console, VNC and port-forward requests to a node. Pure; throws 400. */
import { badRequest } from '#kube/api-error.ts';
import type { Forward } from '#subresources/route.ts';
import type { SubresourceVerb } from '#api/verbs/verb.ts';

/** Returns the path segments or query that follow the verb in the request to the node. */
export function buildPathSuffix(verb: SubresourceVerb, query: URLSearchParams, forward: Forward | undefined): string {
  switch (verb) {
    case 'vnc':
      return parseGoBoolean(query, 'preserveSession') ? '?preserveSession=true' : '';
    case 'vnc/screenshot':
      return parseGoBoolean(query, 'moveCursor') ? '?moveCursor=true' : '';
    default:
      return forward === undefined ? '' : `/${forward.port}/${forward.protocol}`;
  }
}

const TRUE: ReadonlySet<string> = new Set(['1', 't', 'T', 'true', 'TRUE', 'True']);
const FALSE: ReadonlySet<string> = new Set(['', '0', 'f', 'F', 'false', 'FALSE', 'False']);

/** Accepts the spellings of Go's strconv.ParseBool, which KubeVirt's clients use. */
function parseGoBoolean(query: URLSearchParams, name: string): boolean {
  const text = query.get(name) ?? '';
  if (TRUE.has(text)) return true;
  if (FALSE.has(text)) return false;
  throw badRequest(`${name} is ${JSON.stringify(text)}; expected true or false`);
}
