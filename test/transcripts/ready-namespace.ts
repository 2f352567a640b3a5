/**
 * Makes a new namespace for a transcript. Controllers add objects to each namespace a moment later; the transcript begins
 * when they exist, so that its first list is the same in every run.
 */
import { readFile } from 'node:fs/promises';
import type { Client } from '#client/client.ts';
import { createHttpTransport } from '#client/http.ts';
import { loadKubeconfig } from '#client/kubeconfig.ts';
import { createClient } from '#client/rest-client.ts';
import { CONFIG_MAPS } from '#kube/core-kinds.ts';
import type { ResourceType } from '#kube/meta.ts';
import { systemClock } from '#lib/clock.ts';

const NAMESPACES: ResourceType = {
  group: '',
  version: 'v1',
  kind: 'Namespace',
  plural: 'namespaces',
  namespaced: false,
};
const SERVICE_ACCOUNTS: ResourceType = {
  group: '',
  version: 'v1',
  kind: 'ServiceAccount',
  plural: 'serviceaccounts',
  namespaced: true,
};
const TIME_LIMIT_MS = 10_000;

export async function readyNamespace(name: string, kubeconfigPath: string): Promise<void> {
  await withClient(kubeconfigPath, async (client) => {
    await client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    await waitForObject(client, SERVICE_ACCOUNTS, name, 'default');
    await waitForObject(client, CONFIG_MAPS, name, 'kube-root-ca.crt');
  });
}

/** Deletes the namespace, so that its pods do not use a node during the next transcript. Does not wait. */
export async function removeNamespace(name: string, kubeconfigPath: string): Promise<void> {
  await withClient(kubeconfigPath, (client) => client.delete(NAMESPACES, { name }));
}

async function withClient(kubeconfigPath: string, use: (client: Client) => Promise<void>): Promise<void> {
  const none = (path: string) => {
    throw new Error(`Cannot read ${path}: expected a kubeconfig that holds everything itself`);
  };
  const access = loadKubeconfig(await readFile(kubeconfigPath, 'utf8'), { readFile: none });
  const transport = createHttpTransport(access, { userAgent: 'selfsame-test', clock: systemClock });
  try {
    await use(createClient(transport));
  } finally {
    transport.close();
  }
}

/** Waits for the object: a watch without a revision begins with existing objects. */
async function waitForObject(client: Client, type: ResourceType, namespace: string, name: string): Promise<void> {
  const signal = AbortSignal.timeout(TIME_LIMIT_MS);
  for await (const _ of client.watch(type, { namespace, fieldSelector: `metadata.name=${name}`, signal })) return;
  throw new Error(`Cannot begin in namespace "${namespace}": the watch ended; expected ${type.plural} "${name}"`);
}
