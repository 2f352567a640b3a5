/** The two verbs of VMs that the Job asks for. Their answers are empty: nothing that a Client reads. */
import { SUBRESOURCES_GROUP } from '#api/names.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import type { ObjectName } from '#client/client.ts';
import { objectPath } from '#client/resource-path.ts';
import type { Transport } from '#client/transport.ts';

/** Throws ApiError where it is refused. A repeated call of the same verb is refused, or for the next instance. */
export type AskVerb = (
  verb: 'restart' | 'stop',
  name: ObjectName,
  options: { readonly signal: AbortSignal },
) => Promise<void>;

const OF_VERBS = { ...VIRTUAL_MACHINES, group: SUBRESOURCES_GROUP };

export function verbsOver(transport: Pick<Transport, 'request'>): AskVerb {
  return async (verb, name, { signal }) => {
    const path = objectPath(OF_VERBS, { ...name, subresource: verb });
    await transport.request({ method: 'PUT', path, body: {}, signal });
  };
}
