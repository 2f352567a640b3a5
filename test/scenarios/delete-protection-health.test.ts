/**
 * While delete protection does not work, a condition and a gauge report it. Also on clusters without admission
 * policies.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { KUBEVIRTS as KUBEVIRT_KIND } from '#api/kubevirt/kind.ts';
import { LocalServices } from '#engine/remote/local-services.ts';
import { startOperator, type OperatorPlane } from '#operator/testing/operator-plane.ts';
import { startTestApi, type Loose, type TestApi, type TestApiOptions } from '#test/support/test-api.ts';

const ADMISSION = '/apis/admissionregistration.k8s.io/v1';
const POLICY = `${ADMISSION}/validatingadmissionpolicies/kubevirt-vm-deletion-protection`;
const BINDING = `${ADMISSION}/validatingadmissionpolicybindings/kubevirt-vm-deletion-protection`;
const ROLE = '/apis/rbac.authorization.k8s.io/v1/clusterroles/selfsame:selfsame-operator';
const KUBEVIRTS = '/apis/kubevirt.io/v1/namespaces/selfsame-system/kubevirts';
const OURS = 'system:serviceaccount:selfsame-system:';

let api: TestApi;
let plane: OperatorPlane;

async function startApi(options: TestApiOptions = {}): Promise<TestApi> {
  const services = new LocalServices();
  services.register('selfsame-system', 'selfsame-webhook', {
    review: async (_, review) => ({
      apiVersion: 'admission.k8s.io/v1',
      kind: 'AdmissionReview',
      response: { uid: (review as Loose).request.uid, allowed: true },
    }),
  });
  services.register('selfsame-system', 'selfsame-subresources', {
    api: ({ path }) => {
      const groupVersion = path.slice('/apis/'.length);
      const list = { kind: 'APIResourceList', apiVersion: 'v1', groupVersion, resources: [] };
      return { status: 200, contentType: 'application/json', body: Buffer.from(JSON.stringify(list)) };
    },
  });
  return startTestApi({ services, ...options });
}

before(async () => {
  api = await startApi();
  plane = await startOperator(api);
  await plane.settle();
});
after(async () => {
  await plane.stop();
  await api.stop();
});

const conditionOf = (kubevirt: Loose): Loose =>
  kubevirt?.status?.conditions?.find(({ type }: Loose) => type === 'DeleteProtectionAvailable') ?? {};
const readCondition = async () => conditionOf(await api.ok('GET', `${KUBEVIRTS}/kubevirt`));
const readGauge = (of = plane) => /^selfsame_delete_protection_available (\d)$/m.exec(of.metrics.text())?.[1];

/** Waits until the operator has reported the reason. */
async function awaitReported(reason: string, of = plane): Promise<void> {
  const known = of.informer(KUBEVIRT_KIND);
  await known.waitUntil(() => conditionOf(known.get('selfsame-system/kubevirt')).reason === reason);
  await of.settle();
}

test('protection is available when all objects are in place', async () => {
  const { status, reason } = await readCondition();
  assert.deepEqual([status, reason, readGauge()], ['True', 'PoliciesInPlace', '1']);
});

const faults: Record<string, { path: string; edit?: Loose; reason: string }> = {
  'a policy is deleted': { path: POLICY, reason: 'PolicyMissing' },
  'a binding is deleted': { path: BINDING, reason: 'PolicyMissing' },
  'a binding only warns': { path: BINDING, edit: { spec: { validationActions: ['Warn'] } }, reason: 'PolicyChanged' },
  'a policy fails open': { path: POLICY, edit: { spec: { failurePolicy: 'Ignore' } }, reason: 'PolicyChanged' },
};

for (const [name, { path, edit, reason }] of Object.entries(faults)) {
  test(`${name}: reported, and reported as available after the repair`, async () => {
    const { metadata } = await api.ok('GET', KUBEVIRTS);
    const watch = await api.watch(`${KUBEVIRTS}?watch=true&resourceVersion=${metadata.resourceVersion}`);
    await (edit === undefined ? api.ok('DELETE', path) : api.ok('PATCH', path, { body: edit }));
    await plane.settle();
    watch.stop();
    const reports = watch.events
      .map(({ object }) => conditionOf(object))
      .map(({ status, reason: why }) => [status, why]);
    assert.deepEqual(reports, [
      ['False', reason],
      ['True', 'PoliciesInPlace'],
    ]);
    assert.equal(readGauge(), '1');
  });
}

test('a problem that cannot be repaired stays reported', async () => {
  const { rules } = await api.ok('GET', ROLE);
  const without = rules.filter(
    ({ resources, verbs }: Loose) =>
      !resources.includes('validatingadmissionpolicybindings') || verbs.includes('watch'),
  );
  const readOnly = without.map((rule: Loose) =>
    rule.resources.includes('validatingadmissionpolicybindings') ? { ...rule, verbs: ['get', 'list', 'watch'] } : rule,
  );
  await api.ok('PATCH', ROLE, { body: { rules: readOnly } });
  await api.ok('DELETE', BINDING);
  await awaitReported('PolicyMissing');
  const { status, message } = await readCondition();
  assert.deepEqual([status, readGauge()], ['False', '0']);
  assert.match(message, /validatingadmissionpolicybindings.*kubevirt-vm-deletion-protection is missing$/);

  await api.ok('PATCH', ROLE, { body: { rules } });
  await awaitReported('PoliciesInPlace');
  assert.equal(readGauge(), '1');
  await api.ok('GET', BINDING);
});

test('a policy that is being deleted is reported, and created again when it is gone', async () => {
  const { metadata } = await api.ok('GET', POLICY);
  await api.ok('PATCH', POLICY, { body: { metadata: { finalizers: ['example.com/held'] } } });
  await api.ok('DELETE', POLICY);
  await awaitReported('PolicyBeingDeleted');
  assert.equal(readGauge(), '0');
  await api.ok('PATCH', POLICY, { body: { metadata: { finalizers: null } } });
  await awaitReported('PoliciesInPlace');
  assert.equal(readGauge(), '1');
  assert.notEqual((await api.ok('GET', POLICY)).metadata.uid, metadata.uid);
});

test('on a cluster without admission policies everything else is installed, until the cluster has policies', async () => {
  const requests: string[] = [];
  let isOld = true;
  // Applies only to our parts: the engine itself always serves policies.
  const old = await startApi({
    wrapHandler: (handler) => (request) => {
      const isPolicy = request.path.startsWith(`${ADMISSION}/validatingadmissionpolic`);
      if (!isOld || !isPolicy || !request.user.name.startsWith(OURS)) return handler(request);
      requests.push(request.path);
      return { status: 404, contentType: 'text/plain', body: Buffer.from('404 page not found\n') };
    },
  });
  const first = await startOperator(old);
  try {
    await awaitReported('KubernetesTooOld', first);
    const kubevirt = await old.ok('GET', `${KUBEVIRTS}/kubevirt`);
    assert.equal(kubevirt.status.phase, 'Deployed');
    assert.deepEqual(
      kubevirt.status.conditions.map(({ type, status }: Loose) => `${type}=${status}`),
      ['Available=True', 'Progressing=False', 'Degraded=False', 'DeleteProtectionAvailable=False'],
    );
    assert.match(
      conditionOf(kubevirt).message,
      /Kubernetes 1\.30 and later do\. Missing without them: delete protection, /,
    );
    assert.equal(readGauge(first), '0');
    // Requested once and never watched.
    assert.deepEqual(requests, [`${ADMISSION}/validatingadmissionpolicies`]);
    assert.deepEqual((await old.ok('GET', `${ADMISSION}/validatingadmissionpolicies`)).items, []);
    await old.ok('GET', `${ADMISSION}/validatingwebhookconfigurations/selfsame-protected-deletes`);
  } finally {
    await first.stop();
  }
  isOld = false;
  const second = await startOperator(old);
  try {
    await awaitReported('PoliciesInPlace', second);
    assert.equal(readGauge(second), '1');
    await old.ok('GET', BINDING);
  } finally {
    await second.stop();
    await old.stop();
  }
});
