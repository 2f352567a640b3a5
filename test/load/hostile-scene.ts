/**
 * A core in a thread, with policies and webhooks full of hostile expressions, and requests that they evaluate at the same
 * time. Reports the longest turn of its event loop in CPU time of this thread, which other processes do not lengthen.
 */
import assert from 'node:assert/strict';
import { isMainThread, parentPort } from 'node:worker_threads';
import { Budget, CostLimitError } from '#cel/limits/budget.ts';
import { compile } from '#cel/compile.ts';
import { withVariables } from '#cel/environment.ts';
import { adaptJson } from '#cel/evaluate/adapt-json.ts';
import { hostileExpressions, hostileSources, hostileSpecs } from '#cel/testing/hostile.ts';
import { kubernetesEnvironment } from '#cel/kubernetes-environment.ts';
import { MAX_SOURCE_LENGTH } from '#cel/parse/limits.ts';
import { DYN } from '#cel/type.ts';
import { MAX_TOTAL_LENGTH } from '#cel/limits/source-limits.ts';
import { installCrd } from '#test/support/gadgets.ts';
import { startTestApi, type TestResponse, type Loose, type TestApi } from '#test/support/test-api.ts';

export interface Report {
  /** The longest turn while the expressions were compiled, and while they were evaluated for requests. */
  readonly compilation: LongestTurn;
  readonly evaluation: LongestTurn;
  /** The answers to the requests. */
  readonly answers: readonly RequestAnswer[];
  /** The time for a million of the simplest cost units on this machine now. */
  readonly unitsMillis: number;
}

export interface LongestTurn {
  readonly cpuMillis: number;
  readonly turns: number;
}

export interface RequestAnswer {
  readonly status: number;
  readonly message: string;
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

/** Each policy matches only the objects that its expression is written for; on others it would fail at once. */
function policyOf(name: string, on: string, expressions: readonly string[]): Loose {
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name },
    spec: {
      matchConstraints: { resourceRules: [rule], objectSelector: { matchLabels: { on } } },
      validations: expressions.map((expression) => ({ expression })),
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

/** Measures the longest turn of the event loop during the work. */
async function measureTurns<T>(work: () => Promise<T>): Promise<{ readonly longest: LongestTurn; readonly result: T }> {
  let longest = 0;
  let turns = 0;
  let isOver = false;
  let before = 0;
  const measure = () => {
    const now = cpuMillis();
    longest = Math.max(longest, now - before);
    before = now;
    turns += 1;
    if (!isOver) setImmediate(measure);
  };
  await nextTurn();
  before = cpuMillis();
  setImmediate(measure);
  const result = await work();
  isOver = true;
  return { longest: { cpuMillis: longest, turns }, result };
}

const shapes = Object.entries(hostileExpressions).map(([, shape], i) => ({ ...shape, name: `h${i}` }));
const kinds = Object.keys(hostileSpecs) as (keyof typeof hostileSpecs)[];
/** One of this many expressions is also put into a webhook: policies and webhooks evaluate expressions in the same way. */
const PER_WEBHOOK = 6;

async function install(api: TestApi): Promise<void> {
  for (const { name, on, expression } of shapes) {
    await api.ok('POST', `${REGISTRATION}/validatingadmissionpolicies`, { body: policyOf(name, on, [expression]) });
    await api.ok('POST', `${REGISTRATION}/validatingadmissionpolicybindings`, { body: bindingOf(name) });
  }
  for (const kind of ['Validating', 'Mutating']) {
    const chosen = shapes.filter((_, i) => i % PER_WEBHOOK === (kind === 'Mutating' ? 0 : 1));
    await api.ok('POST', `${REGISTRATION}/${kind.toLowerCase()}webhookconfigurations`, {
      body: {
        apiVersion: 'admissionregistration.k8s.io/v1',
        kind: `${kind}WebhookConfiguration`,
        metadata: { name: 'hostile' },
        webhooks: chosen.map(({ name, on, expression }) => webhookOf(name, on, expression)),
      },
    });
  }
  // As much as one policy may contain; whether it is accepted does not matter here.
  for (const [i, source] of Object.values(hostileSources).entries()) {
    const expressions = [source(MAX_SOURCE_LENGTH - 1), source(MAX_TOTAL_LENGTH - MAX_SOURCE_LENGTH)];
    await api.call('POST', `${REGISTRATION}/validatingadmissionpolicies`, {
      body: policyOf(`s${i}`, 'none', expressions),
    });
  }
}

/** Sends all requests without waiting for answers, each in its own turn, so that parsing does not add up to one turn. */
async function createAll(api: TestApi, bodies: readonly Buffer[]): Promise<readonly TestResponse[]> {
  const calls: Promise<TestResponse>[] = [];
  for (const body of bodies) {
    calls.push(api.call('POST', LOADS, { body }));
    await nextTurn();
  }
  return Promise.all(calls);
}

const nextTurn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

/** Returns the median of several measurements. */
function unitsMillis(): number {
  const environment = withVariables(kubernetesEnvironment, { n: DYN });
  const program = compile('n.all(a, n.all(b, a + b >= 0))', environment);
  if ('failure' in program) throw new Error(program.failure);
  const numbers = adaptJson(hostileSpecs.numbers().n);
  const times = Array.from({ length: 5 }, () => {
    const before = cpuMillis();
    assert.throws(() => program.evaluate(() => numbers, new Budget(1_000_000)), CostLimitError);
    return cpuMillis() - before;
  });
  return times.toSorted((a, b) => a - b)[2]!;
}

async function run(): Promise<Report> {
  const unitsMillisBefore = unitsMillis();
  const api = await startTestApi();
  await installCrd(api, crd);
  await api.settle();
  const compiled = await measureTurns(async () => {
    await install(api);
    await api.settle();
  });
  const bodies = kinds.map((on) => Buffer.from(JSON.stringify(loadOf(on, on))));
  const evaluated = await measureTurns(() => createAll(api, bodies));
  await api.stop();
  return {
    compilation: compiled.longest,
    evaluation: evaluated.longest,
    answers: evaluated.result.map(({ status, body }) => ({ status, message: body.message })),
    unitsMillis: Math.max(unitsMillisBefore, unitsMillis()),
  };
}

if (!isMainThread) parentPort?.postMessage(await run());
