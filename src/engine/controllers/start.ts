/** Every controller that the engine brings, in one list; each acts under its own account. */
import type { Client } from '#client/client.ts';
import { createInProcessTransport } from '#client/in-process.ts';
import { createClient } from '#client/rest-client.ts';
import { SYSTEM_NAMESPACES } from '#engine/admission/namespace-lifecycle.ts';
import { crdController } from '#engine/controllers/custom-resource-definition.ts';
import type { EngineController } from '#engine/controllers/engine-controller.ts';
import { accountUser, BOOTSTRAP, INFORMERS } from '#engine/controllers/identities.ts';
import { NAMESPACES } from '#engine/controllers/kinds.ts';
import { namespaceController } from '#engine/controllers/namespace.ts';
import { SharedInformers } from '#engine/controllers/shared-informers.ts';
import type { Registry } from '#engine/registry/registry.ts';
import type { ApiHandler, UserInfo } from '#engine/request.ts';
import { isApiError } from '#kube/api-error.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import type { RunningController } from '#runtime/controller.ts';
import { EventRecorder } from '#runtime/events.ts';

export interface ControllerOptions {
  readonly handler: ApiHandler;
  readonly registry: Registry;
  readonly clock: Clock;
  readonly log: Log;
}

export interface RunningControllers {
  readonly controllers: readonly RunningController[];
  stop(): Promise<void>;
}

const CONTROLLERS: readonly EngineController[] = [crdController, namespaceController];

export async function startControllers(options: ControllerOptions): Promise<RunningControllers> {
  const { registry, clock, log } = options;
  const stopping = new AbortController();
  const { signal } = stopping;
  await ensureSystemNamespaces(clientOf(options, BOOTSTRAP));

  const informers = new SharedInformers({ reader: clientOf(options, INFORMERS), clock, log, signal });
  const informer: SharedInformers['of'] = (type) => informers.of(type);
  const controllers = CONTROLLERS.flatMap(({ account, start }) => {
    const client = clientOf(options, accountUser(account));
    const events = new EventRecorder({ writer: client, clock, log, component: account, signal });
    return start({ client, informer, registry, clock, log, events, signal });
  });
  await informers.synced();
  return {
    controllers,
    async stop() {
      stopping.abort();
      await Promise.all([...controllers.map(({ stopped }) => stopped), informers.stopped()]);
    },
  };
}

function clientOf({ handler }: ControllerOptions, user: UserInfo): Client {
  return createClient(createInProcessTransport({ handler, user, userAgent: 'selfsame-engine' }));
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
