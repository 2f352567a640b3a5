/** Verbs of VMs and instances end to end: client, TLS, API server, subresources, TLS, node. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, suite, test } from 'node:test';
import { CREATED_BY_LABEL } from '#api/names.ts';
import { VIRTUAL_MACHINE_INSTANCE_MIGRATIONS } from '#api/virtual-machine-instance-migration/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { PODS } from '#kube/core-kinds.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import {
  NODE,
  startSubresourcesScene,
  type SubresourceResponse,
  type SubresourcesScene,
} from '#test/scenarios/subresources-scene.ts';
import { sendHttp1Request, withoutCredentials } from '#test/support/raw-https.ts';
import type { Loose } from '#test/support/test-api.ts';

const ROOT = '/apis/subresources.kubevirt.io';
const IN_NAMESPACE = `${ROOT}/v1/namespaces/default`;

let scene: SubresourcesScene;
const cleanups: (() => unknown)[] = [];

before(async () => {
  scene = await startSubresourcesScene({ after: (fn) => cleanups.push(fn) });
});
after(async () => {
  await scene?.stop();
  for (const cleanup of cleanups) await cleanup();
});
beforeEach(() => {
  scene.onRead = undefined;
  scene.node.nextError = undefined;
  scene.node.done.length = 0;
});

const onVm = (name: string, verb: string, body?: unknown): Promise<SubresourceResponse> =>
  scene.call('PUT', `${IN_NAMESPACE}/virtualmachines/${name}/${verb}`, { body });
const onVmi = (name: string, verb: string, body?: unknown): Promise<SubresourceResponse> =>
  scene.call('PUT', `${IN_NAMESPACE}/virtualmachineinstances/${name}/${verb}`, { body });

interface VmCase {
  readonly vm: Loose;
  readonly status?: Loose;
  readonly vmi?: Loose;
  readonly verb: string;
  readonly body?: Loose;
  readonly code: number;
  /** The refusal's message after Kubernetes' prefix. */
  readonly message?: string;
  readonly runs?: Loose;
  readonly requests?: readonly string[];
  readonly grace?: number;
}

const RUNS = { phase: 'Running' };
const SHORT = { ...RUNS, spec: { terminationGracePeriodSeconds: 30 } };

const vmCases: Record<string, VmCase> = {
  'start of Halted changes the run strategy': {
    vm: { runStrategy: 'Halted' },
    verb: 'start',
    code: 202,
    runs: 'Always',
  },
  'start changes running': { vm: { running: false }, verb: 'start', code: 202, runs: true },
  'a paused start of Halted is a request': {
    vm: { runStrategy: 'Halted' },
    verb: 'start',
    body: { paused: true },
    code: 202,
    runs: 'Halted',
    requests: ['Start paused'],
  },
  'start of Manual is a request': {
    vm: { runStrategy: 'Manual' },
    status: { created: false },
    verb: 'start',
    code: 202,
    requests: ['Start'],
  },
  'start of Manual replaces a finished instance': {
    vm: { runStrategy: 'Manual' },
    vmi: { phase: 'Succeeded' },
    verb: 'start',
    code: 202,
    requests: ['Stop', 'Start'],
  },
  'start of a running VM': {
    vm: { runStrategy: 'Manual' },
    vmi: RUNS,
    verb: 'start',
    code: 409,
    message: 'VM is already running',
  },
  'start of Always': {
    vm: { runStrategy: 'Always' },
    verb: 'start',
    code: 409,
    message: 'Always does not support manual start requests',
  },
  'start during another request': {
    vm: { runStrategy: 'Manual' },
    status: { stateChangeRequests: [{ action: 'Start' }] },
    verb: 'start',
    code: 500,
    message: 'unable to complete request: stop/start already underway',
  },
  'start of RerunOnFailure after a failure': {
    vm: { runStrategy: 'RerunOnFailure' },
    vmi: { phase: 'Failed' },
    verb: 'start',
    code: 409,
    message: 'RerunOnFailure does not support starting VM from failed state',
  },
  'stop of Always changes the run strategy': {
    vm: { runStrategy: 'Always' },
    vmi: RUNS,
    verb: 'stop',
    code: 202,
    runs: 'Halted',
  },
  'stop changes running to false': { vm: { running: true }, vmi: RUNS, verb: 'stop', code: 202, runs: false },
  'a forced stop shortens the grace period': {
    vm: { runStrategy: 'Always' },
    vmi: SHORT,
    verb: 'stop',
    body: { gracePeriod: 0 },
    code: 202,
    runs: 'Halted',
    grace: 0,
  },
  'a forced stop sets a grace period if there was none': {
    vm: { runStrategy: 'Manual' },
    vmi: RUNS,
    verb: 'stop',
    body: { gracePeriod: 0 },
    code: 202,
    requests: ['Stop'],
    grace: 0,
  },
  'a stop replaces queued requests': {
    vm: { runStrategy: 'Manual' },
    status: { stateChangeRequests: [{ action: 'Start' }] },
    vmi: RUNS,
    verb: 'stop',
    code: 202,
    requests: ['Stop'],
  },
  'stop of a VM that does not run': {
    vm: { runStrategy: 'Halted' },
    verb: 'stop',
    code: 409,
    message: 'VM is not running',
  },
  'restart is two requests': {
    vm: { runStrategy: 'Always' },
    vmi: RUNS,
    verb: 'restart',
    code: 202,
    requests: ['Stop', 'Start'],
  },
  'restart of Halted': {
    vm: { runStrategy: 'Halted' },
    verb: 'restart',
    code: 409,
    message: 'RunStategy Halted does not support manual restart requests',
  },
  'restart of a VM that does not run': {
    vm: { runStrategy: 'Manual' },
    verb: 'restart',
    code: 409,
    message: 'VM is not running: Halted',
  },
  'restart with a grace period other than 0': {
    vm: { runStrategy: 'Always' },
    vmi: RUNS,
    verb: 'restart',
    body: { gracePeriodSeconds: 5 },
    code: 400,
    message: 'For force restart, only gracePeriod=0 is supported for now',
  },
};

suite('verbs of VMs', () => {
  for (const [title, wanted] of Object.entries(vmCases)) {
    test(title, async () => {
      const name = scene.newName();
      await scene.createVm(name, wanted.vm, wanted.status);
      if (wanted.vmi !== undefined) await scene.createVmi(name, wanted.vmi);
      const dry = { ...wanted.body, dryRun: ['All'] };
      const before = await scene.readVm(name);
      const tried = await onVm(name, wanted.verb, dry);
      assert.deepEqual(await scene.readVm(name), before, 'a dry run changes nothing');
      const answer = await onVm(name, wanted.verb, wanted.body);
      assert.equal(tried.status, answer.status, 'a dry run has the same response');
      assert.equal(answer.status, wanted.code, JSON.stringify(answer.body));
      if (wanted.code === 202) assert.equal(answer.body, '');
      else assert.ok(answer.body.message.endsWith(wanted.message), answer.body.message);
      if (wanted.code === 409) {
        const expectedMessage = `Operation cannot be fulfilled on virtualmachine.kubevirt.io "${name}": ${wanted.message}`;
        assert.equal(answer.body.message, expectedMessage);
        assert.equal(answer.body.reason, 'Conflict');
      }
      const { spec, status } = await scene.readVm(name);
      if (wanted.runs !== undefined) assert.equal(spec.runStrategy ?? spec.running, wanted.runs);
      if (wanted.code !== 202) return;
      const formatRequest = (request: Loose) => request.action + (request.data?.paused === 'true' ? ' paused' : '');
      assert.deepEqual((status?.stateChangeRequests ?? []).map(formatRequest), wanted.requests ?? []);
      if (wanted.grace !== undefined) {
        assert.equal((await scene.readVmi(name)).spec.terminationGracePeriodSeconds, wanted.grace);
      }
    });
  }

  test('are refused for a VM that does not exist', async () => {
    const { status, body } = await onVm('nobody', 'start');
    assert.equal(status, 404);
    assert.equal(body.message, 'virtualmachine.kubevirt.io "nobody" not found');
  });

  test('a forced restart deletes the running launcher pod of that instance, and no other', async () => {
    const name = scene.newName();
    await scene.createVm(name, { runStrategy: 'Always' });
    const { metadata } = await scene.createVmi(name, RUNS);
    const pods: Record<string, string> = { mine: metadata.uid, other: 'another-uid' };
    for (const [pod, uid] of Object.entries(pods)) {
      await scene.admin.create(PODS, {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: `${name}-${pod}`, namespace: 'default', labels: { [CREATED_BY_LABEL]: uid } },
        spec: { containers: [{ name: 'compute', image: 'x' }], nodeName: NODE },
      });
      await scene.patchStatus(PODS, `${name}-${pod}`, { phase: 'Running' });
    }
    assert.equal((await onVm(name, 'restart', { gracePeriodSeconds: 0 })).status, 202);
    const deleted = async (pod: string) => {
      const { metadata: kept } = await scene.admin.get(PODS, { namespace: 'default', name: `${name}-${pod}` });
      return kept.deletionTimestamp !== undefined;
    };
    assert.deepEqual([await deleted('mine'), await deleted('other')], [true, false]);
  });

  test('a migration is created for a running guest, and not by a dry run', async () => {
    const name = scene.newName();
    const migrationsOf = async () => {
      const { items } = await scene.admin.list(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, { namespace: 'default' });
      return items.filter(({ spec }) => spec.vmiName === name).map(({ metadata, spec }) => ({ metadata, spec }));
    };
    assert.equal((await onVm(name, 'migrate')).body.message, `virtualmachine.kubevirt.io "${name}" not found`);
    await scene.createVm(name, { runStrategy: 'Always' });
    const missing = await onVm(name, 'migrate');
    assert.equal(missing.status, 404);
    assert.equal(missing.body.message, `virtualmachineinstance.kubevirt.io "${name}" not found`);
    await scene.createVmi(name, { phase: 'Scheduled' });
    const early = await onVm(name, 'migrate');
    assert.equal(early.status, 409);
    assert.match(early.body.message, /: VM is not running$/);
    await scene.patchStatus(VIRTUAL_MACHINE_INSTANCES, name, RUNS);
    assert.equal((await onVm(name, 'migrate', { dryRun: ['All'] })).status, 202);
    assert.deepEqual(await migrationsOf(), []);
    const { status, body } = await onVm(name, 'migrate', { addedNodeSelector: { zone: 'b' } });
    assert.deepEqual([status, body], [202, '']);
    const [migration] = await migrationsOf();
    assert.match(migration?.metadata.name ?? '', /^kubevirt-migrate-vm-.{5}$/);
    assert.deepEqual(migration?.spec, { vmiName: name, addedNodeSelector: { zone: 'b' } });
  });

  test('a change between read and write causes a new read', async () => {
    const name = scene.newName();
    await scene.createVm(name, { runStrategy: 'Manual' }, { created: false });
    const { metadata } = await scene.createVmi(name, RUNS);
    let changes = 1;
    scene.onRead = async () => {
      if (changes-- <= 0) return;
      await scene.patchStatus(VIRTUAL_MACHINES, name, { stateChangeRequests: [{ action: 'Start' }] });
    };
    assert.equal((await onVm(name, 'stop')).status, 202);
    const { status } = await scene.readVm(name);
    assert.deepEqual(status.stateChangeRequests, [{ action: 'Stop', uid: metadata.uid }]);
  });

  test('permanent concurrent changes cause a conflict', async () => {
    const name = scene.newName();
    await scene.createVm(name, { runStrategy: 'Manual' }, { created: false });
    await scene.createVmi(name, RUNS);
    let changes = 0;
    scene.onRead = async () => {
      await scene.patchStatus(VIRTUAL_MACHINES, name, {
        stateChangeRequests: [{ action: 'Start', uid: String(changes++) }],
      });
    };
    const { status, body } = await onVm(name, 'stop');
    assert.equal(status, 409);
    assert.match(body.message, /the object has been modified/);
  });

  test('only for users who may update the subresource', async () => {
    const name = scene.newName();
    await scene.createVm(name, { runStrategy: 'Halted' });
    const access = scene.front.accessOf('operator');
    const path = `${IN_NAMESPACE}/virtualmachines/${name}/start`;
    const refused = await scene.call('PUT', path, { access });
    assert.equal(refused.status, 403);
    assert.match(refused.body.message, /cannot update resource "virtualmachines\/start" in API group "subresources/);
    assert.equal((await scene.readVm(name)).spec.runStrategy, 'Halted');
    const rules = [
      { apiGroups: ['subresources.kubevirt.io'], resources: ['virtualmachines/start'], verbs: ['update'] },
    ];
    const rbac = { apiVersion: 'rbac.authorization.k8s.io/v1', metadata: { name: 'start', namespace: 'default' } };
    const roles = '/apis/rbac.authorization.k8s.io/v1/namespaces/default';
    await scene.front.create(`${roles}/roles`, { ...rbac, kind: 'Role', rules });
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'start' };
    const subjects = [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'operator' }];
    await scene.front.create(`${roles}/rolebindings`, { ...rbac, kind: 'RoleBinding', roleRef, subjects });
    assert.equal((await scene.call('PUT', path, { access })).status, 202);
  });
});

interface VmiCase {
  readonly vmi: Loose;
  readonly verb: string;
  readonly code: number;
  readonly message?: string;
  readonly done?: string;
}

const PAUSED = { phase: 'Running', conditions: [{ type: 'Paused', status: 'True' }] };
const vmiCases: Record<string, VmiCase> = {
  'pause reaches the guest': { vmi: RUNS, verb: 'pause', code: 200, done: 'pause' },
  'unpause reaches the guest': { vmi: PAUSED, verb: 'unpause', code: 200, done: 'resume' },
  'soft reboot reaches the guest': { vmi: RUNS, verb: 'softreboot', code: 200, done: 'softReboot' },
  'reset reaches the guest': { vmi: RUNS, verb: 'reset', code: 200, done: 'reset' },
  'pause of a paused guest': { vmi: PAUSED, verb: 'pause', code: 409, message: 'VMI is already paused' },
  'unpause of a running guest': { vmi: RUNS, verb: 'unpause', code: 409, message: 'VMI is not paused' },
  'pause of a guest that does not run yet': {
    vmi: { phase: 'Scheduling' },
    verb: 'pause',
    code: 409,
    message: 'VM is not running',
  },
  'soft reboot of a paused guest': { vmi: PAUSED, verb: 'softreboot', code: 409, message: 'VMI is paused' },
};

suite('verbs of instances', () => {
  for (const [title, { vmi, verb, code, message, done }] of Object.entries(vmiCases)) {
    test(title, async () => {
      const name = scene.newName();
      await scene.createVmi(name, vmi);
      scene.node.run(name, { state: vmi === PAUSED ? 'paused' : 'running' });
      assert.equal((await onVmi(name, verb, { dryRun: ['All'] })).status, code);
      assert.deepEqual(scene.node.done, [], 'a dry run does not reach the guest');
      const { status, body } = await onVmi(name, verb);
      assert.equal(status, code, JSON.stringify(body));
      assert.deepEqual(scene.node.done, done === undefined ? [] : [`${done} ${name}`]);
      if (message !== undefined) assert.ok(body.message.endsWith(message), body.message);
    });
  }

  test('the older version is served, too', async () => {
    const name = scene.newName();
    await scene.createVmi(name, RUNS);
    scene.node.run(name);
    const path = `${ROOT}/v1alpha3/namespaces/default/virtualmachineinstances/${name}/pause`;
    assert.equal((await scene.call('PUT', path)).status, 200);
  });

  test('an error of the node is returned', async () => {
    const name = scene.newName();
    await scene.createVmi(name, RUNS);
    const missing = await onVmi(name, 'pause');
    assert.deepEqual(
      [missing.status, missing.body.message],
      [404, `virtualmachineinstance.kubevirt.io "${name}" not found`],
    );
    scene.node.run(name, { state: 'ended', how: 'shutdown' });
    const ended = await onVmi(name, 'pause');
    assert.equal(ended.status, 409);
    scene.node.run(name);
    scene.node.nextError = new HypervisorError('Cannot pause domain: QEMU does not answer');
    const failed = await onVmi(name, 'pause');
    assert.equal(failed.status, 500);
    assert.match(failed.body.message, /QEMU does not answer$/);
  });

  test('an unreachable node causes an error that names it', async () => {
    const name = scene.newName();
    await scene.createVmi(name, { ...RUNS, nodeName: 'nowhere' });
    const { status, body } = await onVmi(name, 'pause');
    assert.equal(status, 500);
    assert.match(body.message, /Cannot reach the agent of node "nowhere": there is no such node/);
  });
});

suite('other parts of the API', () => {
  test('discovery lists the group, its versions and verbs', async () => {
    const group = await scene.call('GET', ROOT);
    assert.equal(group.body.preferredVersion.version, 'v1');
    const { body } = await scene.call('GET', `${ROOT}/v1`);
    assert.equal(body.kind, 'APIResourceList');
    assert.ok(body.resources.some(({ name }: Loose) => name === 'virtualmachines/start'));
    const { body: service } = await scene.call(
      'GET',
      '/apis/apiregistration.k8s.io/v1/apiservices/v1.subresources.kubevirt.io',
    );
    assert.equal(service.status.conditions[0].status, 'True');
  });

  const refusals: Record<string, { method?: string; path: string; code: number; message: RegExp }> = {
    'a verb of a later version': {
      path: `${IN_NAMESPACE}/virtualmachines/db/memorydump`,
      code: 501,
      message: /^virtualmachines\/memorydump is not supported yet$/,
    },
    'an unknown verb': {
      path: `${IN_NAMESPACE}/virtualmachines/db/explode`,
      code: 404,
      message: /could not find the requested resource/,
    },
    'an unsupported method': {
      method: 'POST',
      path: `${IN_NAMESPACE}/virtualmachines/db/start`,
      code: 405,
      message: /does not allow this method/,
    },
  };
  for (const [title, { method = 'PUT', path, code, message }] of Object.entries(refusals)) {
    test(`refuses ${title}`, async () => {
      const { status, body } = await scene.call(method, path);
      assert.equal(status, code);
      assert.match(body.message, message);
    });
  }

  test('a console request without an upgrade is refused', async () => {
    const name = scene.newName();
    await scene.createVmi(name, RUNS);
    const { status, body } = await scene.call('GET', `${IN_NAMESPACE}/virtualmachineinstances/${name}/console`);
    assert.equal(status, 400);
    assert.match(body.message, /console requires a WebSocket/);
  });
});

suite('logs from the node', () => {
  const readLog = async (query: string) => {
    await launcher;
    const path = `/api/v1/namespaces/default/pods/launcher/log?container=compute${query}`;
    return await sendHttp1Request(scene.front.admin, { path });
  };
  let launcher: Promise<unknown>;
  before(() => {
    launcher = scene.admin.create(PODS, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'launcher', namespace: 'default' },
      spec: {
        containers: [
          { name: 'compute', image: 'x' },
          { name: 'silent', image: 'x' },
        ],
        nodeName: NODE,
      },
    });
  });

  const cases: Record<string, { query: string; want: string }> = {
    complete: { query: '', want: 'one\ntwo\nthree\n' },
    'the end': { query: '&tailLines=1', want: 'three\n' },
    'the beginning': { query: '&limitBytes=5', want: 'one\nt' },
    'the end, followed': { query: '&tailLines=1&follow=true', want: 'two\nthree\n' },
  };
  for (const [title, { query, want }] of Object.entries(cases)) {
    test(title, async () => assert.equal((await readLog(query)).text, want));
  }

  test('refuses timestamps, which guests do not have', async () => {
    const { status, text } = await readLog('&timestamps=true');
    assert.equal(status, 400);
    assert.match(text, /has no times/);
  });
});

suite("the node's endpoint", () => {
  const requestAs = (user: string, path: string, method = 'GET') =>
    sendHttp1Request(scene.endpoint(scene.front.accessOf(user)), { method, path });
  const PAUSE = '/v1/namespaces/default/virtualmachineinstances/any/pause';

  test('allows each client only its own requests', async () => {
    scene.node.run('any');
    const codes = [
      await requestAs('kube-apiserver-kubelet-client', '/containerLogs/default/launcher/compute'),
      await requestAs('kube-apiserver-kubelet-client', PAUSE, 'PUT'),
      await requestAs('system:node:node-2', '/containerLogs/default/launcher/compute'),
      await requestAs('admin', PAUSE, 'PUT'),
      await requestAs('selfsame-subresources', PAUSE, 'PUT'),
      await requestAs('admin', '/healthz'),
    ].map(({ status }) => status);
    assert.deepEqual(codes, [200, 403, 403, 403, 200, 200]);
    assert.deepEqual(scene.node.done, ['pause any']);
  });

  test('refuses clients without a certificate of our CA', async () => {
    const anonymous = withoutCredentials(scene.endpoint(scene.front.admin));
    await assert.rejects(sendHttp1Request(anonymous, { path: '/healthz' }));
  });

  test('answers unknown paths with a Status', async () => {
    const { status, text } = await requestAs('selfsame-subresources', '/pods');
    assert.equal(status, 404);
    assert.equal(JSON.parse(text).kind, 'Status');
    assert.equal((await requestAs('selfsame-subresources', PAUSE)).status, 405);
    assert.equal((await requestAs('selfsame-subresources', '//evil.invalid/healthz')).status, 404);
  });
});
