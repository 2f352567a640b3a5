/**
 * A core in a thread of its own, with policies and webhooks full of hostile expressions, and requests that they judge
 * at the same time. Reports the longest turn of its event loop, in CPU time of this thread: a noisy machine makes turns
 * longer for the clock on the wall, but not for this one.
 */
import { isMainThread, parentPort } from 'node:worker_threads';
import { hostileExpressions, hostileSpecs } from '#cel/hostile.fixture.ts';
import { installCrd } from '#test/support/gadgets.ts';
import { startTestApi, type Answer, type Loose, type TestApi } from '#test/support/test-api.ts';

export interface Report {
  /** By what was going on. */
  readonly turns: Readonly<Record<string, LongestTurn>>;
  /** The answers to the requests that the policies judged. */
  readonly answers: Readonly<Record<string, string>>;
}

export interface LongestTurn {
  readonly cpuMillis: number;
  readonly turns: number;
}

const REGISTRATION = '/apis/admissionregistration.k8s.io/v1';
const LOADS = '/apis/load.local/v1/loads';

const free = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };

const crd: Loose = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'loads.load.local' },
  spec: {
    group: 'load.local',
    scope: 'Cluster',
    names: { plural: 'loads', singular: 'load', kind: 'Load' },
    versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: free } }],
  },
};

const rule = { apiGroups: ['load.local'], apiVersions: ['v1'], operations: ['CREATE'], resources: ['loads'] };

/** Each policy sees only the objects that its expression is meant for: all others would fault at once. */
function policyOf(name: string, on: string, expression: string): Loose {
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name },
    spec: {
      matchConstraints: { resourceRules: [rule], objectSelector: { matchLabels: { on } } },
      validations: [{ expression, message: 'no' }],
    },
  };
}

function bindingOf(policyName: string): Loose {
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name: policyName },
    spec: { policyName, validationActions: ['Deny'] },
  };
}

function webhookOf(name: string, on: string, expression: string): Loose {
  return {
    name: `${name}.load.local`,
    clientConfig: { url: 'https://nobody.invalid' },
    rules: [rule],
    objectSelector: { matchLabels: { on } },
    matchConditions: [{ name: 'never', expression: `!(${expression})` }],
    failurePolicy: 'Ignore',
    sideEffects: 'None',
    admissionReviewVersions: ['v1'],
  };
}

function loadOf(name: string, on: keyof typeof hostileSpecs): Loose {
  return { apiVersion: 'load.local/v1', kind: 'Load', metadata: { name, labels: { on } }, spec: hostileSpecs[on]() };
}

const cpuMillis = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
};

/** The longest turn of the event loop until the work is done. */
async function watched<T>(work: () => Promise<T>): Promise<{ readonly longest: LongestTurn; readonly result: T }> {
  let longest = 0;
  let turns = 0;
  let isOver = false;
  let before = cpuMillis();
  const look = () => {
    const now = cpuMillis();
    longest = Math.max(longest, now - before);
    before = now;
    turns += 1;
    if (!isOver) setImmediate(look);
  };
  const ended = new Promise<void>((resolve) => setImmediate(() => resolve()));
  await ended;
  setImmediate(look);
  const result = await work();
  isOver = true;
  return { longest: { cpuMillis: longest, turns }, result };
}

const shapes = Object.entries(hostileExpressions).map(([sentence, shape], i) => ({
  ...shape,
  sentence,
  name: `h${i}`,
}));
const kinds = Object.keys(hostileSpecs) as (keyof typeof hostileSpecs)[];

async function install(api: TestApi): Promise<void> {
  for (const { name, on, expression } of shapes) {
    await api.ok('POST', `${REGISTRATION}/validatingadmissionpolicies`, { body: policyOf(name, on, expression) });
    await api.ok('POST', `${REGISTRATION}/validatingadmissionpolicybindings`, { body: bindingOf(name) });
  }
  for (const kind of ['Validating', 'Mutating']) {
    await api.ok('POST', `${REGISTRATION}/${kind.toLowerCase()}webhookconfigurations`, {
      body: {
        apiVersion: 'admissionregistration.k8s.io/v1',
        kind: `${kind}WebhookConfiguration`,
        metadata: { name: 'hostile' },
        webhooks: shapes.map(({ name, on, expression }) => webhookOf(name, on, expression)),
      },
    });
  }
}

/** All at the same time. */
function createAll(api: TestApi, loads: readonly Buffer[]): Promise<readonly Answer[]> {
  return Promise.all(loads.map((body) => api.call('POST', LOADS, { body })));
}

async function run(): Promise<Report> {
  const api = await startTestApi();
  await installCrd(api, crd);
  await api.settle();
  const bodies = (round: string) => kinds.map((on) => Buffer.from(JSON.stringify(loadOf(`${on}-${round}`, on))));

  const [unjudged, judged] = [bodies('unjudged'), bodies('judged')];
  const before = await watched(() => createAll(api, unjudged));
  const installed = await watched(async () => {
    await install(api);
    await api.settle();
  });
  const after = await watched(() => createAll(api, judged));
  await api.stop();
  return {
    turns: { unjudged: before.longest, installed: installed.longest, judged: after.longest },
    answers: Object.fromEntries(
      after.result.map(({ status, body }, i) => [kinds[i]!, `${status} ${body.message ?? ''}`.slice(0, 300)]),
    ),
  };
}

if (!isMainThread) parentPort?.postMessage(await run());
