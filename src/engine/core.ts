/**
 * The API server without a network: composes store, kinds, access, admission and handlers. The HTTPS listener serves
 * it, and tests run it in one process.
 */
import { admissionChain, type ValidatingStep } from '#engine/admission/admission.ts';
import { customKindLifecycle } from '#engine/admission/custom-kind-lifecycle.ts';
import { limitRangeDefaults, limitRangeValidation } from '#engine/admission/limits/limit-range.ts';
import { type QuotaCounts, quotaCounts } from '#engine/admission/limits/quota-counts.ts';
import { resourceQuotaAdmission } from '#engine/admission/limits/resource-quota.ts';
import { namespaceLifecycle } from '#engine/admission/namespace-lifecycle.ts';
import { nodeRestriction } from '#engine/admission/node-restriction.ts';
import { serviceAddresses } from '#engine/admission/service-addresses/service-addresses.ts';
import {
  DEFAULT_SERVICE_SUBNETS,
  parseServiceNetworks,
  type ServiceNetworks,
} from '#engine/admission/service-addresses/service-networks.ts';
import { taintNewNodes } from '#engine/admission/node-taints.ts';
import { tolerateLostNodes } from '#engine/admission/pod-tolerations.ts';
import { priorityAdmission, priorityClassValidation } from '#engine/admission/priority.ts';
import { paramAccess } from '#engine/admission/policies/param-access.ts';
import { validatingPolicies } from '#engine/admission/policies/validating-policies.ts';
import { rbacEscalation } from '#engine/admission/rbac-escalation.ts';
import { runtimeClassValidation } from '#engine/admission/runtime-class.ts';
import { serviceAccountAdmission, serviceAccountValidation } from '#engine/admission/service-account.ts';
import { startWebhooks } from '#engine/admission/webhooks/start-webhooks.ts';
import { startAggregation, type RunningAggregation } from '#engine/aggregation/start-aggregation.ts';
import { createApi } from '#engine/dispatch/api.ts';
import { Pace } from '#engine/handlers/pace.ts';
import { noteName } from '#engine/handlers/request-notes.ts';
import type { AuditSink } from '#engine/audit/audit-record.ts';
import type { OutwardIdentity } from '#engine/auth/front-proxy.ts';
import { withNodeReads } from '#engine/auth/node-reads.ts';
import { rbacAuthorizer } from '#engine/auth/rbac/rbac-authorizer.ts';
import { serviceAccountTokens } from '#engine/auth/service-accounts/authenticate-token.ts';
import { newSigningKey, type SigningKey } from '#engine/auth/service-accounts/signing-key.ts';
import { joinTokenLookups, type TokenLookup } from '#engine/auth/tokens.ts';
import { BOOTSTRAP, INFORMERS } from '#engine/controllers/identities.ts';
import { healthChecks, type HealthCheck } from '#engine/dispatch/health.ts';
import { Kubelets } from '#engine/remote/kubelets.ts';
import { createPaths } from '#engine/dispatch/paths.ts';
import { createEngineMetrics } from '#engine/dispatch/metrics.ts';
import { customResourceDefinitions } from '#engine/registry/crd/custom-resource-definitions.ts';
import { trackCustomKinds } from '#engine/custom-kinds/track-custom-kinds.ts';
import { reviewResources } from '#engine/registry/kinds/access/reviews.ts';
import { builtInResources } from '#engine/registry/kinds/all.ts';
import { Registry } from '#engine/registry/registry.ts';
import type { ApiHandler, UserInfo } from '#engine/request/request.ts';
import { LocalServices } from '#engine/remote/local-services.ts';
import type { Store } from '#engine/store/store.ts';
import { podBinding } from '#engine/subresources/pod-binding.ts';
import { podEviction } from '#engine/subresources/pod-eviction.ts';
import { podLog } from '#engine/subresources/pod-log.ts';
import { tokenRequest } from '#engine/subresources/token-request.ts';
import type { Clock } from '#lib/clock.ts';
import { FairTurns } from '#lib/fair-turns.ts';
import type { Log } from '#lib/log.ts';
import { MetricRegistry } from '#lib/metrics/metric-registry.ts';

interface CoreOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  /** Tokens of users; service account tokens are always accepted. */
  readonly tokens?: TokenLookup;
  /** Signs service account tokens; without one, tokens end with the process. */
  readonly signingKey?: SigningKey;
  /** Webhooks and aggregated APIs that run in this process. */
  readonly services?: LocalServices;
  /** The ranges of the addresses and node ports of Services. */
  readonly serviceNetworks?: ServiceNetworks | undefined;
  /** Receives audit records; without it there is no audit log. */
  readonly audit?: AuditSink | undefined;
  /** Additional checks of /readyz. */
  readonly readyChecks?: readonly HealthCheck[] | undefined;
  /** Metrics to which those of the API server are added; by default an empty registry. */
  readonly metrics?: MetricRegistry;
  /** Divides the time of the server between users. */
  readonly turns?: FairTurns;
  /** Returns the whole store as one file. */
  backup?(): Promise<Buffer>;
  /** Our identity for aggregated APIs and kubelets; without it, other processes do not trust us. */
  readonly identity?: OutwardIdentity;
  /** host:port of the listener, once it is known. */
  serverAddress?(): string;
}

export interface Core {
  readonly handler: ApiHandler;
  readonly registry: Registry;
  readonly tokens: TokenLookup;
  readonly signingKey: SigningKey;
  /** The metrics of this process, which /metrics serves. */
  readonly metrics: MetricRegistry;
  readonly aggregation: RunningAggregation;
  readonly quotaCounts: QuotaCounts;
  /** Makes the check `start` of /readyz pass. */
  markStarted(): void;
  stop(): void;
}

const NO_TOKENS: TokenLookup = () => undefined;

export function createCore(options: CoreOptions): Core {
  const { store, clock, log, serverAddress = () => '' } = options;
  const { signingKey = newSigningKey(), services = new LocalServices(), audit } = options;
  const { metrics: allMetrics = new MetricRegistry(), turns = new FairTurns() } = options;
  const registry = new Registry([...builtInResources, ...reviewResources, customResourceDefinitions]);
  const stopTracking = trackCustomKinds(store, registry, log, { services, clock });
  const metrics = createEngineMetrics(allMetrics, store);
  let started = false;
  const health = healthChecks(store, () => started, options.readyChecks);

  const authorizer = withNodeReads(rbacAuthorizer(store, log), store);
  const tokens = joinTokenLookups([
    options.tokens ?? NO_TOKENS,
    serviceAccountTokens({ store, clock, key: signingKey }),
  ]);

  const guards = [namespaceLifecycle(store), customKindLifecycle(store, registry)];
  const spendOf = (user: UserInfo) => {
    const pace = new Pace(turns, user);
    return (units: number) => pace.spend(units);
  };
  const quotas = resourceQuotaAdmission({ store, clock, spendOf });
  const { serviceNetworks = parseServiceNetworks(DEFAULT_SERVICE_SUBNETS) } = options;
  const addresses = serviceAddresses(store, serviceNetworks);
  const policies = validatingPolicies({ store, registry, authorizer, log, metrics });
  const webhooks = startWebhooks({ store, registry, services, authorizer, clock, log, metrics });
  const admission = admissionChain({
    mutating: [
      noteName,
      ...guards,
      serviceAccountAdmission(store, clock),
      priorityAdmission(store),
      tolerateLostNodes,
      taintNewNodes,
      limitRangeDefaults(store),
      skipDuringStart(webhooks.mutating),
      // Again, for containers that a webhook has added.
      limitRangeDefaults(store),
      // After webhooks, which may change the fields that it reads.
      addresses.mutating,
    ],
    validating: [
      noteName,
      rbacEscalation(authorizer),
      paramAccess({ store, registry, authorizer }),
      nodeRestriction(store, registry),
      serviceAccountValidation(store),
      priorityClassValidation(store),
      runtimeClassValidation,
      limitRangeValidation(store),
      skipDuringStart(policies.step),
      skipDuringStart(webhooks.validating),
      quotas.validating,
    ],
    // Last, because a quota counts only what nothing else refuses.
    guards: [...guards, addresses.guard, quotas.guard],
  });

  const { identity } = options;
  const aggregation = startAggregation({
    store,
    services,
    clock,
    log,
    frontProxy: identity?.frontProxy,
    ownGroups: new Set(builtInResources.map(({ group }) => group)),
  });
  const kubelets = new Kubelets({ store, clock, identity });

  const handler = createApi({
    store,
    clock,
    log,
    registry,
    authorizer,
    tokens,
    turns,
    metrics,
    admission,
    paths: createPaths({
      registry,
      metrics: allMetrics,
      health,
      signingKey,
      aggregation,
      ...(options.backup && { backup: options.backup }),
      serverAddress,
    }),
    subresources: {
      'pods/binding': podBinding,
      'pods/eviction': podEviction(registry),
      'pods/log': podLog(kubelets),
      'serviceaccounts/token': tokenRequest({ key: signingKey }),
    },
    aggregation,
    audit,
  });

  return {
    handler,
    registry,
    tokens,
    signingKey,
    metrics: allMetrics,
    aggregation,
    quotaCounts: quotaCounts(store, spendOf(INFORMERS)),
    markStarted() {
      started = true;
    },
    stop() {
      aggregation.stop();
      kubelets.close();
      webhooks.stop();
      policies.stop();
      authorizer.stop();
      stopTracking();
    },
  };
}

/**
 * Skips webhooks and policies for the engine's own start: system namespaces and default roles are created regardless of
 * them. Otherwise a webhook whose server is down would block the start, and nobody could repair it. The start is
 * identified by its user object, which no external request can have.
 */
function skipDuringStart(step: ValidatingStep): ValidatingStep {
  return (attributes) => (attributes.user === BOOTSTRAP ? undefined : step(attributes));
}
