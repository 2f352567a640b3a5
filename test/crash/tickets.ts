/** The objects that the crash tests write: a built-in and a custom kind, both with a token that names the write. */
import type { Client } from '#client/client.ts';
import { isRecord, type KubeObject, type ResourceType, type Stored } from '#kube/meta.ts';

export const TICKETS: ResourceType = {
  group: 'crash.test',
  version: 'v1',
  kind: 'Ticket',
  plural: 'tickets',
  namespaced: true,
};
const CRDS: ResourceType = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  namespaced: false,
};

/** Returns the field that names the write of this state. */
export function tokenOf(object: KubeObject): string {
  const data = object['data'];
  return isRecord(data) ? String(data['token']) : '';
}

const crd = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'tickets.crash.test' },
  spec: {
    group: 'crash.test',
    scope: 'Namespaced',
    names: { plural: 'tickets', singular: 'ticket', kind: 'Ticket', listKind: 'TicketList' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              data: {
                type: 'object',
                properties: { token: { type: 'string' }, mode: { type: 'string', default: 'auto' } },
              },
            },
          },
        },
      },
    ],
  },
};

/** Creates the CRD and waits until its kind is served. */
export async function installTickets(client: Client): Promise<void> {
  const made = await client.create(CRDS, structuredClone(crd));
  if (isEstablished(made)) return;
  const { name, resourceVersion } = made.metadata;
  for await (const { object } of client.watch(CRDS, { fieldSelector: `metadata.name=${name}`, resourceVersion })) {
    if (isEstablished(object)) return;
  }
  throw new Error('the watch ended before the custom kind was established');
}

function isEstablished(object: Stored): boolean {
  const status = object['status'];
  const conditions = isRecord(status) && Array.isArray(status['conditions']) ? status['conditions'] : [];
  return conditions.some((condition) => condition.type === 'Established' && condition.status === 'True');
}
