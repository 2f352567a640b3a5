/** Permissions for guests: the Kubernetes roles view, edit and admin with our additions, tested by real requests. */
import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { openConnection } from '#cli/connection/api-connection.ts';
import type { ClusterAccess } from '#client/kubeconfig.ts';
import { ApiError } from '#kube/api-error.ts';
import { systemClock } from '#lib/clock.ts';
import { rbacObjects } from '#operator/objects/rbac.ts';
import { startSubresourcesScene, type SubresourcesScene } from '#test/scenarios/subresources-scene.ts';

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

interface AccessCase {
  readonly method: 'GET' | 'PUT' | 'POST' | 'PATCH' | 'DELETE' | 'upgrade';
  /** The path below the namespace. */
  readonly path: string;
  readonly group?: string;
  readonly body?: unknown;
  /** The expected codes by role. A code other than 403 means that the request was authorized. */
  readonly codes: Readonly<Partial<Record<Role, number>>>;
}

const allowEditors = (code: number) => ({ edit: code, admin: code });
const allowAll = (code: number) => ({ view: code, ...allowEditors(code) });
const HALT = { spec: { runStrategy: 'Halted' } };

const NO_CLAIM = { claimName: 'none', claimUID: 'none' };

const accessCases: Record<string, AccessCase> = {
  'list VMs': { method: 'GET', path: 'virtualmachines', group: KINDS, codes: allowAll(200) },
  'read an instance': { method: 'GET', path: 'virtualmachineinstances/db', group: KINDS, codes: allowAll(200) },
  'change a VM': { method: 'PATCH', path: 'virtualmachines/idle', group: KINDS, body: HALT, codes: allowEditors(200) },
  'delete a VM': { method: 'DELETE', path: 'virtualmachines/nothing', group: KINDS, codes: allowEditors(404) },
  start: { method: 'PUT', path: 'virtualmachines/idle/start?dryRun=All', codes: allowEditors(202) },
  stop: { method: 'PUT', path: 'virtualmachines/db/stop?dryRun=All', codes: allowEditors(202) },
  restart: { method: 'PUT', path: 'virtualmachines/db/restart?dryRun=All', codes: allowEditors(202) },
  // Authorized; the VM has no claim of that name.
  'adopt a claim': { method: 'PUT', path: 'virtualmachines/idle/adoptstate', body: NO_CLAIM, codes: allowEditors(409) },
  'release a claim': {
    method: 'PUT',
    path: 'virtualmachines/idle/releasestate',
    body: NO_CLAIM,
    codes: allowEditors(409),
  },
  pause: { method: 'PUT', path: 'virtualmachineinstances/db/pause?dryRun=All', codes: allowEditors(200) },
  console: { method: 'upgrade', path: 'virtualmachineinstances/db/console', codes: allowEditors(101) },
  vnc: { method: 'upgrade', path: 'virtualmachineinstances/db/vnc', codes: allowEditors(101) },
  screenshot: { method: 'GET', path: 'virtualmachineinstances/db/vnc/screenshot', codes: allowEditors(200) },
  'forward a port of an instance': {
    method: 'upgrade',
    path: 'virtualmachineinstances/db/portforward/22/tcp',
    codes: allowEditors(101),
  },
  'read a disk': { method: 'upgrade', path: 'virtualmachines/idle/exportdisk?volume=none', codes: allowEditors(400) },
  // Authorized; the claim does not wait for content.
  'upload an image': { method: 'upgrade', path: 'persistentvolumeclaims/disk/upload', codes: allowEditors(409) },
  'upload an image to a claim that does not exist': {
    method: 'upgrade',
    path: 'persistentvolumeclaims/none/upload',
    codes: allowEditors(404),
  },
  'forward a port of a VM': { method: 'upgrade', path: 'virtualmachines/db/portforward/22', codes: allowEditors(101) },
};

let scene: SubresourcesScene;
const access = new Map<string, ClusterAccess>();
const cleanups: (() => unknown)[] = [];

before(async () => {
  scene = await startSubresourcesScene({ after: (fn) => cleanups.push(fn) });
  const roleNames = /^kubevirt\.io:(?:view|edit|admin)$/;
  for (const { object } of rbacObjects) {
    if (object.kind === 'ClusterRole' && roleNames.test(object.metadata.name ?? '')) {
      await scene.front.create(`${RBAC}/clusterroles`, object);
    }
  }
  await scene.settle();
  await scene.front.create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
  for (const [name, role] of Object.entries(USERS)) {
    access.set(name, scene.front.accessOf(name, ['system:authenticated']));
    if (role === undefined) continue;
    await scene.front.create(`${RBAC}/namespaces/default/rolebindings`, {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata: { name, namespace: 'default' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
      subjects: [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name }],
    });
  }
  await scene.createVm('db', { runStrategy: 'Always' }, { created: true });
  await scene.createVmi('db', { phase: 'Running' });
  await scene.createVm('idle', { runStrategy: 'Halted' });
  await scene.front.create('/api/v1/namespaces/default/persistentvolumeclaims', {
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

/** Returns the code of the response, or 101 if a stream was opened. */
async function codeOf(
  user: string,
  namespace: string,
  { method, path, group = SUBRESOURCES, body }: AccessCase,
): Promise<number> {
  const userAccess = access.get(user)!;
  const url = `${group}/namespaces/${namespace}/${path}`;
  const api = openConnection({ access: userAccess, userAgent: 'test', clock: systemClock, readFile: () => '' });
  try {
    switch (method) {
      case 'upgrade':
        (await api.openWebSocket(url, ['plain.kubevirt.io'])).destroy();
        return 101;
      case 'PATCH':
        await api.patch(url, body);
        return 200;
      case 'GET':
        await api.getBytes(url, 1024 * 1024);
        return 200;
      default:
        return (await scene.call(method, url, { access: userAccess, body })).status;
    }
  } catch (error) {
    if (error instanceof ApiError) return error.code;
    throw error;
  } finally {
    api.close();
  }
}

for (const [what, ask] of Object.entries(accessCases)) {
  suite(what, () => {
    for (const [user, role] of Object.entries(USERS)) {
      const want = (role && ask.codes[role]) ?? 403;
      test(`is ${want === 403 ? 'not ' : ''}allowed for ${role ?? 'a user without a role'}`, async () => {
        assert.equal(await codeOf(user, 'default', ask), want);
      });
      test(`is not allowed for ${role ?? 'a user without a role'} in another namespace`, async () => {
        assert.equal(await codeOf(user, 'shop', ask), 403);
      });
    }
  });
}
