/** Who may do what to guests: the roles view, edit and admin of Kubernetes with ours added, asked by real requests. */
import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { openConnection } from '#cli/api-connection.ts';
import type { ClusterAccess } from '#client/kubeconfig.ts';
import { ApiError } from '#kube/api-error.ts';
import { systemClock } from '#lib/clock.ts';
import { rbacObjects } from '#operator/objects/rbac.ts';
import { startSubresourcesScene, type Scene } from '#test/scenarios/subresources-scene.ts';

const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const SUBRESOURCES = '/apis/subresources.kubevirt.io/v1';
const KINDS = '/apis/kubevirt.io/v1';

type Role = 'view' | 'edit' | 'admin';
const USERS: Readonly<Record<string, Role | undefined>> = {
  vera: 'view',
  eddi: 'edit',
  ada: 'admin',
  nobody: undefined,
};

interface Ask {
  readonly method: 'GET' | 'PUT' | 'POST' | 'PATCH' | 'DELETE' | 'upgrade';
  /** Below the namespace. */
  readonly path: string;
  readonly group?: string;
  readonly body?: unknown;
  /** The codes of who may: something else than 403 was decided by then. */
  readonly may: Readonly<Partial<Record<Role, number>>>;
}

const EDITORS = (code: number) => ({ edit: code, admin: code });
const ALL = (code: number) => ({ view: code, ...EDITORS(code) });
const HALT = { spec: { runStrategy: 'Halted' } };

const NO_CLAIM = { claimName: 'none', claimUID: 'none' };

const asks: Record<string, Ask> = {
  'list VMs': { method: 'GET', path: 'virtualmachines', group: KINDS, may: ALL(200) },
  'read an instance': { method: 'GET', path: 'virtualmachineinstances/db', group: KINDS, may: ALL(200) },
  'change a VM': { method: 'PATCH', path: 'virtualmachines/idle', group: KINDS, body: HALT, may: EDITORS(200) },
  'delete a VM': { method: 'DELETE', path: 'virtualmachines/nothing', group: KINDS, may: EDITORS(404) },
  start: { method: 'PUT', path: 'virtualmachines/idle/start?dryRun=All', may: EDITORS(202) },
  stop: { method: 'PUT', path: 'virtualmachines/db/stop?dryRun=All', may: EDITORS(202) },
  restart: { method: 'PUT', path: 'virtualmachines/db/restart?dryRun=All', may: EDITORS(202) },
  // Looked at, and found to have no claim of that name.
  'adopt a claim': { method: 'PUT', path: 'virtualmachines/idle/adoptstate', body: NO_CLAIM, may: EDITORS(409) },
  'release a claim': { method: 'PUT', path: 'virtualmachines/idle/releasestate', body: NO_CLAIM, may: EDITORS(409) },
  pause: { method: 'PUT', path: 'virtualmachineinstances/db/pause?dryRun=All', may: EDITORS(200) },
  console: { method: 'upgrade', path: 'virtualmachineinstances/db/console', may: EDITORS(101) },
  vnc: { method: 'upgrade', path: 'virtualmachineinstances/db/vnc', may: EDITORS(101) },
  screenshot: { method: 'GET', path: 'virtualmachineinstances/db/vnc/screenshot', may: EDITORS(200) },
  'forward a port of an instance': {
    method: 'upgrade',
    path: 'virtualmachineinstances/db/portforward/22/tcp',
    may: EDITORS(101),
  },
  'read a disk': { method: 'upgrade', path: 'virtualmachines/idle/exportdisk?volume=none', may: EDITORS(400) },
  // Looked at, and found not to wait for content.
  'upload an image': { method: 'upgrade', path: 'persistentvolumeclaims/disk/upload', may: EDITORS(409) },
  'upload an image to nowhere': { method: 'upgrade', path: 'persistentvolumeclaims/none/upload', may: EDITORS(404) },
  'forward a port of a VM': { method: 'upgrade', path: 'virtualmachines/db/portforward/22', may: EDITORS(101) },
};

let scene: Scene;
const access = new Map<string, ClusterAccess>();
const cleanups: (() => unknown)[] = [];

before(async () => {
  scene = await startSubresourcesScene({ after: (fn) => cleanups.push(fn) });
  const people = /^kubevirt\.io:(?:view|edit|admin)$/;
  for (const { object } of rbacObjects) {
    if (object.kind === 'ClusterRole' && people.test(object.metadata.name ?? '')) {
      await scene.front.put(`${RBAC}/clusterroles`, object);
    }
  }
  await scene.settle();
  await scene.front.put('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
  for (const [name, role] of Object.entries(USERS)) {
    access.set(name, scene.front.accessOf(name, ['system:authenticated']));
    if (role === undefined) continue;
    await scene.front.put(`${RBAC}/namespaces/default/rolebindings`, {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata: { name, namespace: 'default' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
      subjects: [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name }],
    });
  }
  await scene.aVm('db', { runStrategy: 'Always' }, { created: true });
  await scene.aVmi('db', { phase: 'Running' });
  await scene.aVm('idle', { runStrategy: 'Halted' });
  await scene.front.put('/api/v1/namespaces/default/persistentvolumeclaims', {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'disk', namespace: 'default' },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
  });
  scene.node.run('db');
});
after(async () => {
  await scene?.stop();
  for (const cleanup of cleanups) await cleanup();
});

/** The code of the answer; 101 where a stream was opened. */
async function codeOf(
  user: string,
  namespace: string,
  { method, path, group = SUBRESOURCES, body }: Ask,
): Promise<number> {
  const own = access.get(user)!;
  const whole = `${group}/namespaces/${namespace}/${path}`;
  const api = openConnection({ access: own, userAgent: 'test', clock: systemClock, readFile: () => '' });
  try {
    switch (method) {
      case 'upgrade':
        (await api.openWebSocket(whole, ['plain.kubevirt.io'])).destroy();
        return 101;
      case 'PATCH':
        await api.patch(whole, body);
        return 200;
      case 'GET':
        await api.getBytes(whole, 1024 * 1024);
        return 200;
      default:
        return (await scene.call(method, whole, { access: own, body })).status;
    }
  } catch (error) {
    if (error instanceof ApiError) return error.code;
    throw error;
  } finally {
    api.close();
  }
}

for (const [what, ask] of Object.entries(asks)) {
  suite(what, () => {
    for (const [user, role] of Object.entries(USERS)) {
      const want = (role && ask.may[role]) ?? 403;
      test(`is ${want === 403 ? 'not ' : ''}for ${role ?? 'somebody without a role'}`, async () => {
        assert.equal(await codeOf(user, 'default', ask), want);
      });
      test(`is not for ${role ?? 'them'} in another namespace`, async () => {
        assert.equal(await codeOf(user, 'shop', ask), 403);
      });
    }
  });
}
