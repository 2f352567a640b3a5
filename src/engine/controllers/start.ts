/** Starts all controllers of the engine. Each one acts under its own account. */
import type { Client } from '#client/client.ts';
import { createInProcessTransport } from '#client/in-process.ts';
import { createClient } from '#client/rest-client.ts';
import { SYSTEM_NAMESPACES } from '#engine/admission/namespace-lifecycle.ts';
import type { QuotaCounts } from '#engine/admission/limits/quota-counts.ts';
import type { Aggregation } from '#engine/aggregation/aggregation.ts';
import type { SigningKey } from '#engine/auth/service-accounts/signing-key.ts';
import { apiServiceController } from '#engine/controllers/api-service.ts';
import { clusterRoleAggregation } from '#engine/controllers/rbac/cluster-role-aggregation.ts';
import { ensureExtensionAuthentication } from '#engine/controllers/extension-authentication.ts';
import { ensureRbacDefaults } from '#engine/controllers/rbac/rbac-defaults.ts';
import { rootCaPublisher } from '#engine/controllers/service-accounts/root-ca.ts';
import { tokenSecretController } from '#engine/controllers/service-accounts/token-secrets.ts';
import { serviceAccountController } from '#engine/controllers/service-accounts/service-account.ts';
import { policyStatusController } from '#engine/controllers/validating-admission-policy.ts';
import { crdController } from '#engine/controllers/custom-resource-definition.ts';
import { disruptionController } from '#engine/controllers/disruption/disruption.ts';
import { endpointSliceController } from '#engine/controllers/endpoint-slice/endpoint-slice.ts';
import type { EngineController } from '#engine/controllers/engine-controller.ts';
import { garbageCollector } from '#engine/controllers/garbage-collector/garbage-collector.ts';
import { accountUser, BOOTSTRAP, INFORMERS } from '#engine/controllers/identities.ts';
import { jobController } from '#engine/controllers/job/job-controller.ts';
import { ENGINE_NAMESPACES } from '#engine/controllers/kinds.ts';
import { loadBalancerController } from '#engine/controllers/load-balancer.ts';
import { namespaceController } from '#engine/controllers/namespace/namespace.ts';
import { nodeLifecycleController } from '#engine/controllers/node-lifecycle/node-lifecycle.ts';
import { persistentVolumeBinder } from '#engine/controllers/persistent-volume/binder.ts';
import { claimProtection, volumeProtection } from '#engine/controllers/persistent-volume/protection.ts';
import { podGarbageCollector } from '#engine/controllers/pod-garbage-collector.ts';
import { resourceQuotaController } from '#engine/controllers/resource-quota.ts';
import { schedulerController } from '#engine/controllers/scheduler/scheduler.ts';
import { SharedInformers } from '#runtime/shared-informers.ts';
import { ttlAfterFinishedController } from '#engine/controllers/ttl-after-finished.ts';
import type { Registry } from '#engine/registry/registry.ts';
import type { ApiHandler, UserInfo } from '#engine/request/request.ts';
import { isApiError } from '#kube/api-error.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import type { RunningController } from '#runtime/controller.ts';
import { EventRecorder } from '#runtime/events.ts';

/** The parts of the server that controllers use. They reach objects only through the API. */
interface ControlledCore {
  readonly handler: ApiHandler;
  readonly registry: Registry;
  readonly signingKey: SigningKey;
  readonly aggregation: Aggregation;
  readonly quotaCounts: QuotaCounts;
}

interface ControllerOptions {
  readonly core: ControlledCore;
  /** The CA certificate that clients in pods trust. */
  readonly caPem: string;
  /** True if Services of type LoadBalancer get the addresses of the nodes. */
  readonly loadBalancer?: boolean | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

export interface RunningControllers {
  readonly controllers: readonly RunningController[];
  stop(): Promise<void>;
}

function controllersOf({ core, caPem, loadBalancer }: ControllerOptions): readonly EngineController[] {
  return [
    crdController,
    namespaceController,
    garbageCollector,
    podGarbageCollector,
    jobController,
    ttlAfterFinishedController,
    schedulerController,
    nodeLifecycleController,
    disruptionController,
    endpointSliceController,
    ...(loadBalancer === true ? [loadBalancerController] : []),
    persistentVolumeBinder,
    claimProtection,
    volumeProtection,
    clusterRoleAggregation,
    policyStatusController,
    resourceQuotaController({ counts: core.quotaCounts }),
    apiServiceController({ aggregation: core.aggregation }),
    serviceAccountController,
    rootCaPublisher({ caPem }),
    tokenSecretController({ key: core.signingKey, caPem }),
  ];
}

export async function startControllers(options: ControllerOptions): Promise<RunningControllers> {
  const { clock, log } = options;
  const { registry } = options.core;
  const stopping = new AbortController();
  const { signal } = stopping;
  const bootstrap = clientOf(options, BOOTSTRAP);
  await ensureSystemNamespaces(bootstrap);
  await ensureRbacDefaults(bootstrap, log);
  await ensureExtensionAuthentication(bootstrap, options.caPem);

  const informers = new SharedInformers({ reader: clientOf(options, INFORMERS), clock, log, signal });
  const informer: SharedInformers['of'] = (type) => informers.of(type);
  const controllers = controllersOf(options).flatMap(({ account, eventSource = account, start }) => {
    const client = clientOf(options, accountUser(account));
    const events = new EventRecorder({ writer: client, clock, log, component: eventSource, signal });
    return start({ client, informer, registry, clock, log, events, signal });
  });
  await informers.waitForSync();
  return {
    controllers,
    async stop() {
      stopping.abort();
      await Promise.all([...controllers.map(({ stopped }) => stopped), informers.stopped()]);
    },
  };
}

function clientOf({ core }: ControllerOptions, user: UserInfo): Client {
  return createClient(createInProcessTransport({ handler: core.handler, user, userAgent: 'selfsame-engine' }));
}

async function ensureSystemNamespaces(client: Client): Promise<void> {
  const { items } = await client.list(ENGINE_NAMESPACES);
  const present = new Set(items.map(({ metadata }) => metadata.name));
  for (const name of SYSTEM_NAMESPACES) {
    if (present.has(name)) continue;
    await client
      .create(ENGINE_NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
      .catch((error: unknown) => {
        if (!isApiError(error, 'AlreadyExists')) throw error;
      });
  }
}
