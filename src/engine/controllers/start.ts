/** Every controller that the engine brings, in one list, and the client that they share. */
import type { Client } from '#client/client.ts';
import { createInProcessTransport } from '#client/in-process.ts';
import { Informer } from '#client/informer.ts';
import { createClient } from '#client/rest-client.ts';
import { SYSTEM_NAMESPACES } from '#engine/admission/namespace-lifecycle.ts';
import { MASTERS } from '#engine/auth/groups.ts';
import { crdController } from '#engine/controllers/custom-resource-definition.ts';
import { CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES } from '#engine/controllers/kinds.ts';
import { namespaceController } from '#engine/controllers/namespace.ts';
import type { Registry } from '#engine/registry/registry.ts';
import type { ApiHandler } from '#engine/request.ts';
import { isApiError } from '#kube/api-error.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { startController } from '#runtime/controller.ts';

export interface ControllerParts {
  readonly handler: ApiHandler;
  readonly registry: Registry;
  readonly clock: Clock;
  readonly log: Log;
}

export interface RunningControllers {
  stop(): Promise<void>;
}

/** Until roles arrive, the engine's own parts are as strong as an administrator. */
const USER = { name: 'system:selfsame:engine-controllers', groups: [MASTERS] };

export async function startControllers({
  handler,
  registry,
  clock,
  log,
}: ControllerParts): Promise<RunningControllers> {
  const client = createClient(createInProcessTransport({ handler, user: USER, userAgent: 'selfsame-engine' }));
  await ensureSystemNamespaces(client);
  const stopping = new AbortController();
  const { signal } = stopping;

  const crds = new Informer({ reader: client, type: CUSTOM_RESOURCE_DEFINITIONS, clock, log });
  const namespaces = new Informer({ reader: client, type: NAMESPACES, clock, log });
  const builtIns = () => registry.resources.filter(({ builtIn }) => builtIn);
  const namespacedKinds = () =>
    registry.collections().filter(({ namespaced, verbs }) => namespaced && verbs.includes('list'));

  const runtime = { client, clock, log, signal };
  const controllers = [
    startController(crdController({ reader: client, informer: crds, clock, builtIns }), runtime),
    startController(namespaceController({ reader: client, informer: namespaces, clock, namespacedKinds }), runtime),
  ];
  const informers = [crds, namespaces].map((informer) => informer.start({ signal }));
  await Promise.all([crds.synced(), namespaces.synced()]);
  return {
    async stop() {
      stopping.abort();
      await Promise.all([...controllers.map(({ stopped }) => stopped), ...informers]);
    },
  };
}

async function ensureSystemNamespaces(client: Client): Promise<void> {
  const { items } = await client.list(NAMESPACES);
  const present = new Set(items.map(({ metadata }) => metadata.name));
  for (const name of SYSTEM_NAMESPACES) {
    if (present.has(name)) continue;
    await client
      .create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
      .catch((error: unknown) => {
        if (!isApiError(error, 'AlreadyExists')) throw error;
      });
  }
}
