/**
 * Nobody's expression or regex can hold the process. Judged by the CPU time that this thread spends within one turn of
 * the event loop, so that a busy machine does not make it fail.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startTestApi, type Loose, type TestApi } from '#test/support/test-api.ts';

const ADMISSION = '/apis/admissionregistration.k8s.io/v1';
const MAPS = '/api/v1/namespaces/default/configmaps';
const LIMIT_MS = 100;

const nested = (depth: number, inner: string): string => {
  let source = inner;
  for (let i = depth; i > 0; i--) source = `n.all(x${i}, ${source})`;
  return source;
};
const n = '[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]';
const overN = (source: string) => source.replaceAll('n.', `${n}.`);

/** Each is a rule; `data.big` has half a megabyte, `data.text` eleven thousand characters. */
const hostile: Record<string, string> = {
  'nested folds': overN(nested(7, 'x1 + x2 > 0')),
  'nested maps': `${`${n}.map(a, `.repeat(8)}1${')'.repeat(8)}.size() > 0`,
  'doubling a string': `${n}.map(i, object.data.text + object.data.text + object.data.text).size() > 0`,
  'a string for each character': "object.data.text.split('').map(c, object.data.text + c).size() > 0",
  'a regex with backtracking in mind': "object.data.text.matches('^(a+)+$')",
  'a regex of many states': "object.data.text.matches('^(a|b)*a(a|b){16}$')",
  'alternatives of stars': "object.data.big.matches('(x*x*x*x*x*x*x*x*)*y')",
  'every match of a regex': "object.data.text.findAll('a*b|a').size() > 0",
  'a regex for each element': overN("n.all(i, object.data.text.matches('(a|aa)+$' + string(i)))"),
  'splitting what is big': "object.data.big.split('a').size() > 3",
  'replacing everywhere': "object.data.big.replace('a', 'bbbbbbbbbbbbbbbbbbbb').size() > 3",
  'joining what was split': "object.data.big.split('').join('-').size() > 0",
  'looking for what is not there': overN("n.all(i, object.data.big.indexOf('aaaaaaaaaaaaaaaaaaaaac') < 0)"),
  'comparing what is big': overN('n.all(i, n.all(j, object == object))'),
  'sorting questions': "object.data.text.split('').isSorted()",
  'sets of many': "sets.contains(object.data.text.split(''), object.data.text.split(''))",
  'lists of lists': `${n}.map(a, ${n}.map(b, ${n}.map(c, ${n}.map(d, [a, b, c, d])))).size() > 0`,
  'long formats': overN("n.all(i, '%s%s%s'.format([object.data, object.data, object.data]).size() > 0)"),
  'numbers as text': "quantity(object.data.digits).isGreaterThan(quantity('1'))",
  'addresses that are none': overN('n.all(i, isIP(object.data.big) || isURL(object.data.big) || true)'),
  'conversions of what is big': overN('n.all(i, bytes(object.data.big).size() > 0)'),
  'lower and upper': overN('n.all(i, object.data.big.lowerAscii().upperAscii().size() > 0)'),
  'a long chain of logic': Array.from({ length: 250 }, (_, i) => `object.data.text == 'x${i}'`).join(' || '),
};

let api: TestApi;
before(async () => {
  api = await startTestApi();
  await api.settle();
  for (const [i, expression] of Object.values(hostile).entries()) {
    const name = `hostile-${i}`;
    const rule = { apiGroups: [''], apiVersions: ['v1'], operations: ['*'], resources: ['configmaps'] };
    const spec = {
      matchConstraints: { resourceRules: [rule] },
      matchConditions: [{ name: 'dear', expression }],
      validations: [{ expression }, { expression, messageExpression: "'no'" }],
    };
    const { status, body } = await api.call('POST', `${ADMISSION}/validatingadmissionpolicies`, {
      body: policy('ValidatingAdmissionPolicy', name, spec),
    });
    assert.equal(status, 201, `${expression.slice(0, 80)}: ${JSON.stringify(body).slice(0, 500)}`);
    await api.ok('POST', `${ADMISSION}/validatingadmissionpolicybindings`, {
      body: policy('ValidatingAdmissionPolicyBinding', name, { policyName: name, validationActions: ['Warn'] }),
    });
  }
  await api.settle();
});
after(() => api.stop());

function policy(kind: string, name: string, spec: Loose): Loose {
  return { apiVersion: 'admissionregistration.k8s.io/v1', kind, metadata: { name }, spec };
}

/** The CPU time in ms of the longest turn while something is done. */
async function longestTurn(work: () => Promise<unknown>): Promise<number> {
  let [running, longest, before] = [true, 0, process.threadCpuUsage()];
  const turn = () => {
    const { user, system } = process.threadCpuUsage(before);
    longest = Math.max(longest, (user + system) / 1000);
    before = process.threadCpuUsage();
    if (running) setImmediate(turn);
  };
  setImmediate(turn);
  await work();
  running = false;
  turn();
  return longest;
}

test(`${Object.keys(hostile).length} hostile policies at once hold the event loop no longer than ${LIMIT_MS} ms`, async () => {
  const text = Array.from({ length: 11_000 }, (_, i) => ((i * 7919) % 5 < 2 ? 'b' : 'a')).join('');
  const data = { big: 'a'.repeat(500_000), text, digits: '9'.repeat(100_000) };
  const create = (name: string) =>
    api.call('POST', MAPS, { body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data } });
  // The first one compiles the regexes.
  const first = await longestTurn(() => create('first'));
  const several = await longestTurn(() => Promise.all(['a', 'b', 'c'].map(create)));
  assert.ok(first < LIMIT_MS, `the first request took ${first.toFixed(0)} ms in one turn`);
  assert.ok(several < LIMIT_MS, `three requests took ${several.toFixed(0)} ms in one turn`);
});
