/** virtctl against the real API, a real node endpoint and simulated guests. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { PassThrough, Readable } from 'node:stream';
import { after, before, beforeEach, suite, test } from 'node:test';
import { NEW_LAYOUT_ANNOTATION } from '#api/names.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_RESTORES } from '#api/virtual-machine-restore/kind.ts';
import { VIRTUAL_MACHINE_SNAPSHOTS } from '#api/virtual-machine-snapshot/kind.ts';
import { apiVersionOf, type ResourceType } from '#kube/meta.ts';
import {
  assertRefused,
  Sink,
  startSubresourcesScene,
  type SubresourcesScene,
} from '#test/scenarios/subresources-scene.ts';
import type { Loose } from '#test/support/test-api.ts';

const RUNS = { phase: 'Running' };

let scene: SubresourcesScene;
const cleanups: (() => unknown)[] = [];

before(async () => {
  scene = await startSubresourcesScene({ after: (fn) => cleanups.push(fn) });
});
after(async () => {
  await scene?.stop();
  for (const cleanup of cleanups) await cleanup();
});
beforeEach(() => void (scene.node.done.length = 0));

suite('virtctl', () => {
  test('starts, restarts and stops', async () => {
    const name = scene.newName();
    await scene.createVm(name, { runStrategy: 'Halted' });
    const dry = await scene.virtctl('start', '--dry-run', name);
    assert.deepEqual(dry, { code: 0, out: `Dry Run execution\nVM ${name} was scheduled to start\n`, err: '' });
    assert.equal((await scene.readVm(name)).spec.runStrategy, 'Halted');
    assert.deepEqual(await scene.virtctl('start', name), {
      code: 0,
      out: `VM ${name} was scheduled to start\n`,
      err: '',
    });
    assert.equal((await scene.readVm(name)).spec.runStrategy, 'Always');
    await scene.createVmi(name, RUNS);
    assert.equal((await scene.virtctl('restart', name)).out, `VM ${name} was scheduled to restart\n`);
    const forced = await scene.virtctl('stop', name, '--force', '--grace-period=0');
    assert.equal(forced.out, `VM ${name} was scheduled to stop\n`);
    assert.equal((await scene.readVmi(name)).spec.terminationGracePeriodSeconds, 0);
  });

  const refusals: Record<string, { argv: string[]; err: string }> = {
    'a start of a VM that does not exist': {
      argv: ['start', 'nobody'],
      err: 'Cannot start VM nobody: virtualmachine.kubevirt.io "nobody" not found in namespace "default"; ...',
    },
    'a stop of a VM that does not exist': {
      argv: ['stop', 'nobody'],
      err: 'Cannot stop VM nobody: virtualmachine.kubevirt.io "nobody" not found in namespace "default"; ...',
    },
    'a restart of a VM that does not exist': {
      argv: ['restart', 'nobody'],
      err: 'Cannot restart VM nobody: virtualmachine.kubevirt.io "nobody" not found in namespace "default"; ...',
    },
    'force without a grace period': {
      argv: ['stop', 'db', '--force'],
      err: 'Must both use --force=true and set --grace-period.',
    },
    'a pause of an instance that does not exist': {
      argv: ['pause', 'vm', 'nobody'],
      err: 'Cannot pause VM nobody: virtualmachines.kubevirt.io "nobody" not found in namespace "default"; ...',
    },
    'a pause of another kind': {
      argv: ['pause', 'pod', 'db'],
      err: 'unsupported resource type "pod"; expected vm or vmi',
    },
    'an unknown command': { argv: ['detonate'], err: 'unknown command "detonate" for "virtctl"' },
    'an unknown command of a group': {
      argv: ['identity', 'detonate'],
      err: 'unknown command "detonate" for "virtctl identity"; expected diff, duplicates, history, renew or show',
    },
    'an unknown output format': {
      argv: ['identity', 'duplicates', '-o', 'xml'],
      err: 'unable to match a printer suitable for the output format "xml", expected json or yaml',
    },
    'duplicates for a user who may not read all namespaces': {
      argv: ['identity', 'duplicates', '--as', 'nobody'],
      err:
        'virtualmachines.kubevirt.io is forbidden: User "nobody" cannot list resource "virtualmachines" in API group "kubevirt.io" at the cluster scope\n' +
        'Finding duplicates requires permission to list virtualmachines.kubevirt.io in all namespaces.',
    },
    'an unknown flag': { argv: ['start', 'db', '--now'], err: 'unknown flag: --now' },
    'protection of a VM that does not exist': {
      argv: ['protect', 'nobody'],
      err: 'Cannot protect VM nobody: virtualmachines.kubevirt.io "nobody" not found in namespace "default"; ...',
    },
    'protection by a user without permission': {
      argv: ['unprotect', 'db', '--as', 'nobody'],
      err: 'Cannot unprotect VM db: virtualmachines.kubevirt.io "db" is forbidden: User "nobody" cannot patch resource "virtualmachines" in API group "kubevirt.io" in the namespace "default"',
    },
    'protection without a VM': { argv: ['protect'], err: 'expected the name of a VM, or --selector' },
    'protection of two VMs': {
      argv: ['protect', 'db', 'web'],
      err: 'accepts between 0 and 1 arg(s), received 2',
    },
    'protection by name and selector': {
      argv: ['unprotect', 'db', '-l', 'tier=db'],
      err: 'a name and --selector cannot be combined',
    },
    'a reason that is too long': {
      argv: ['protect', 'db', '--reason', 'x'.repeat(1025)],
      err: 'Cannot use --reason: it has 1025 characters; expected at most 1024',
    },
    'too few arguments': { argv: ['pause', 'vm'], err: 'accepts 2 arg(s), received 1' },
  };
  for (const [title, { argv, err }] of Object.entries(refusals)) {
    test(`refuses ${title}`, async () => {
      assertRefused(await scene.virtctl(...argv), err);
    });
  }

  test('pauses through the VM, and reports if the VM is not to run', async () => {
    const name = scene.newName();
    await scene.createVm(name, { runStrategy: 'Halted' });
    assert.equal(
      (await scene.virtctl('pause', 'vm', name)).err,
      `error: Cannot pause VM ${name}: it is not set to run; start it with virtctl start ${name}\n`,
    );
    await scene.createVmi(name, RUNS);
    scene.node.run(name);
    assert.equal((await scene.virtctl('pause', 'vm', name)).out, `VMI ${name} was scheduled to pause\n`);
    assert.equal((await scene.virtctl('soft-reboot', name)).code, 1, 'the guest is paused');
    assert.equal((await scene.virtctl('reset', name)).out, `VMI ${name} was scheduled to reset\n`);
    assert.deepEqual(scene.node.done, [`pause ${name}`, `reset ${name}`]);
  });

  test('warns before it removes a disk that the guest has mounted', async () => {
    const name = scene.newName();
    const volume = { name: 'data', persistentVolumeClaim: { claimName: 'data', hotpluggable: true } };
    const disk = { name: 'data', disk: { bus: 'scsi' }, serial: 'data' };
    const spec = { domain: { devices: { disks: [disk] } }, volumes: [volume] };
    await scene.createVm(name, { runStrategy: 'Always' });
    await scene.createVmi(name, { ...RUNS, spec, conditions: [{ type: 'AgentConnected', status: 'True' }] });
    scene.node.run(name);
    const mounted = { diskName: 'sda', mountPoint: '/srv', fileSystemType: 'xfs' };
    const serial = '0QEMU_QEMU_HARDDISK_data';
    scene.node.fileSystems = { items: [{ ...mounted, disk: [{ busType: 'scsi', serial }] }] };
    const argv = ['removevolume', name, '--volume-name=data', '--dry-run'];
    const { code, out, err } = await scene.virtctl(...argv);
    assert.equal(code, 0, err);
    assert.match(out, /^Dry Run execution\nSuccessfully submitted remove volume request/);
    assert.match(err, /^Warning: the guest of VM \S+ has volume data mounted at \/srv \(sda, xfs\): .*\n$/);

    scene.node.nextError = new Error('the agent is busy');
    const busy = await scene.virtctl(...argv);
    scene.node.nextError = undefined;
    assert.equal(busy.code, 0, busy.err);
    assert.match(busy.err, /^Warning: cannot check whether the guest of VM \S+ has volume data mounted: .*\n$/);

    scene.node.fileSystems = { items: [] };
    assert.equal((await scene.virtctl(...argv)).err, '');
    scene.node.fileSystems = undefined;
  });

  test('a clone that fails leaves nothing, and one that takes long continues', async () => {
    const name = scene.newName();
    await scene.createVm(name, { runStrategy: 'Halted' });
    const steps = async () => {
      const types: ResourceType[] = [VIRTUAL_MACHINE_SNAPSHOTS, VIRTUAL_MACHINE_RESTORES];
      const lists = await Promise.all(types.map((type) => scene.admin.list(type, { namespace: 'default' })));
      return lists.map(({ items }) => items.map(({ metadata }) => metadata.name));
    };
    const out = new Sink();
    const done = scene.virtctlInteractive(Readable.from([]), out, 'clone', name, 'copy', '--wait');
    await once(out, 'grown');
    const [[step = ''] = [], restores] = await steps();
    assert.deepEqual(restores, [step]);
    await scene.patchStatus(VIRTUAL_MACHINE_SNAPSHOTS, step, { phase: 'Failed', error: { message: 'no room' } });
    const { code, err } = await done;
    assert.equal(code, 1);
    assert.ok(err.endsWith(`Cannot take snapshot ${step}: no room\n`), err);
    assert.deepEqual(await steps(), [[], []]);

    const late = await scene.virtctl('clone', name, 'copy', '--wait', '--timeout=1ms');
    assert.match(
      late.err,
      /error: Cannot confirm that snapshot clone-copy-\w+ is ready: after 0s, .*; it continues, see /,
    );
    assert.deepEqual(
      (await steps()).map(({ length }) => length),
      [1, 1],
    );
  });

  test('a restore to a new name warns if the copy gets the keys of the TPM', async () => {
    const name = scene.newName();
    await scene.createVm(name, { runStrategy: 'Halted' });
    const metadata = { namespace: 'default', name: `${name}-noon` };
    const apiVersion = apiVersionOf(VIRTUAL_MACHINE_SNAPSHOTS);
    const source = { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name };
    const { kind } = VIRTUAL_MACHINE_SNAPSHOTS;
    await scene.admin.create(VIRTUAL_MACHINE_SNAPSHOTS, { apiVersion, kind, metadata, spec: { source } });
    const restore = async (target: string, ...flags: string[]) => {
      const { code, err } = await scene.virtctl(
        'restore',
        name,
        `--snapshot=${name}-noon`,
        `--target=${target}`,
        ...flags,
      );
      assert.equal(code, 0, err);
      return err;
    };
    const contains = (...includedVolumes: string[]) =>
      scene.patchStatus(VIRTUAL_MACHINE_SNAPSHOTS, metadata.name, { snapshotVolumes: { includedVolumes } });
    await contains('data');
    assert.equal(await restore(`${name}-a`), '');
    await contains('data', `persistent-state-for-${name}`);
    const warning = new RegExp(
      `^Warning: VM ${name}-b gets a copy of the persistent state of VM ${name}: .*--omit-state\n$`,
    );
    assert.match(await restore(`${name}-b`), warning);
    assert.equal(await restore(`${name}-c`, '--omit-state'), '');
    assert.equal(await restore(name), '');
  });

  test('prints both versions', async () => {
    const { out } = await scene.virtctl('version');
    assert.match(
      out,
      /^Client Version: version.Info\{GitVersion:"v.*\nServer Version: version.Info\{GitVersion:"v.*\n$/,
    );
    assert.doesNotMatch((await scene.virtctl('version', '-c')).out, /Server/);
  });

  test('accepts new addresses only for a VM whose record is lost', async () => {
    const [name, lost] = [scene.newName(), 'f0a4e6a2-0000-4000-8000-000000000001'];
    await scene.createVm(name, { runStrategy: 'Halted' });
    const err = `error: Cannot renew the identity record of VM ${name}: the record is not lost\n`;
    assert.deepEqual(await scene.virtctl('identity', 'renew', name), { code: 1, out: '', err });
    await scene.patchStatus(VIRTUAL_MACHINES, name, { identityRecordUID: lost });
    assert.match((await scene.virtctl('identity', 'show', name)).err, /^Warning: the identity record is lost;/);
    const out = `VM ${name} will get new device addresses at its next start\n`;
    const dry = await scene.virtctl('identity', 'renew', name, '--dry-run');
    assert.deepEqual(dry, { code: 0, out: `Dry Run execution\n${out}`, err: '' });
    assert.equal((await scene.readVm(name)).metadata.annotations, undefined);
    assert.deepEqual(await scene.virtctl('identity', 'renew', name), { code: 0, out, err: '' });
    assert.equal((await scene.readVm(name)).metadata.annotations[NEW_LAYOUT_ANNOTATION], lost);
  });

  test('lists VMs that share a firmware uuid', async () => {
    const uuid = '5a9fc181-957e-5c32-9e5a-2de5e9673531';
    const withUuid = (text: string, finalizers: string[] = []) => ({
      metadata: { finalizers },
      spec: { runStrategy: 'Halted', template: { spec: { domain: { devices: {}, firmware: { uuid: text } } } } },
    });
    const create = async (namespace: string, name: string, vm: Loose) => {
      const { kind } = VIRTUAL_MACHINES;
      const metadata = { ...vm.metadata, namespace, name };
      await scene.admin.create(VIRTUAL_MACHINES, { apiVersion: apiVersionOf(VIRTUAL_MACHINES), kind, ...vm, metadata });
    };
    for (const name of ['team-a', 'team-b', 'team-c']) {
      await scene.front.create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    }
    await create('team-a', 'db', withUuid(uuid));
    const none = 'No two VirtualMachines have the same firmware uuid, MAC address or IP address.\n';
    assert.deepEqual(await scene.virtctl('identity', 'duplicates'), { code: 0, out: none, err: '' });
    assert.equal((await scene.virtctl('identity', 'duplicates', '-o', 'json')).out, '[]\n');

    await create('team-b', 'copy-of-db', withUuid(uuid.toUpperCase()));
    await create('team-c', 'gone', withUuid(uuid, ['test.selfsame.io/kept']));
    await scene.admin.delete(VIRTUAL_MACHINES, { namespace: 'team-c', name: 'gone' });
    const table =
      'UUID                                   NAMESPACE   NAME         STATUS\n' +
      `${uuid}   team-a      db           <none>\n` +
      `${uuid}   team-b      copy-of-db   <none>\n`;
    assert.deepEqual(await scene.virtctl('identity', 'duplicates'), { code: 0, out: table, err: '' });
    assert.equal((await scene.virtctl('identity', 'duplicates', '-n', 'team-b')).out, table);
    assert.equal(
      (await scene.virtctl('-n', 'team-c', 'identity', 'duplicates')).out,
      'No VirtualMachine in namespace team-c shares its firmware uuid, a MAC address or an IP address.\n',
    );
    const { out } = await scene.virtctl('identity', 'duplicates', '--output=json');
    const virtualMachines = [
      { namespace: 'team-a', name: 'db' },
      { namespace: 'team-b', name: 'copy-of-db' },
    ];
    assert.deepEqual(JSON.parse(out), [{ uuid, virtualMachines }]);
  });

  const LABEL = 'kubevirt.io/vm-delete-protection';
  const REASON = 'selfsame.io/delete-protection-reason';

  test('protects and unprotects a VM', async () => {
    const name = scene.newName();
    await scene.createVm(name, { runStrategy: 'Halted' });
    const created = await scene.readVm(name);
    const dry = await scene.virtctl('protect', name, '--dry-run');
    assert.deepEqual(dry, { code: 0, out: `Dry Run execution\nVM ${name} is protected from deletion\n`, err: '' });
    assert.deepEqual(await scene.readVm(name), created);

    const done = { code: 0, out: `VM ${name} is protected from deletion\n`, err: '' };
    assert.deepEqual(await scene.virtctl('protect', name, '--reason', 'holds the ledger'), done);
    const kept = await scene.readVm(name);
    assert.deepEqual(
      [kept.metadata.labels, kept.metadata.annotations],
      [{ [LABEL]: 'true' }, { [REASON]: 'holds the ledger' }],
    );
    assert.deepEqual(kept.spec, created.spec);
    assert.deepEqual(await scene.virtctl('protect', name), done, 'again');
    assert.deepEqual(await scene.readVm(name), kept, 'nothing is written, and the reason stays');

    const undone = { code: 0, out: `VM ${name} is no longer protected from deletion\n`, err: '' };
    assert.deepEqual(await scene.virtctl('unprotect', name), undone);
    assert.equal((await scene.readVm(name)).metadata.labels?.[LABEL], undefined);
    assert.deepEqual(await scene.virtctl('unprotect', name), undone, 'again');
  });

  test('does not report a VM as protected that is being deleted', async () => {
    const name = scene.newName();
    await scene.createVm(name, { runStrategy: 'Halted' });
    const key = { namespace: 'default', name };
    const body = { metadata: { finalizers: ['test.selfsame.io/kept'] } };
    await scene.admin.patch(VIRTUAL_MACHINES, key, { type: 'merge', body });
    await scene.admin.delete(VIRTUAL_MACHINES, key);
    const err = `error: Cannot protect VM ${name}: it is already being deleted\n`;
    assert.deepEqual(await scene.virtctl('protect', name), { code: 1, out: '', err });
  });

  /** Allows the user a verb on VMs, in all namespaces or in one. */
  async function allow(user: string, { verb, namespace }: { verb: string; namespace?: string }): Promise<void> {
    const apiGroup = 'rbac.authorization.k8s.io';
    const path = `/apis/${apiGroup}/v1/${namespace === undefined ? '' : `namespaces/${namespace}/`}`;
    const [prefix, of] = namespace === undefined ? ['Cluster', {}] : ['', { namespace }];
    const base = { apiVersion: `${apiGroup}/v1`, metadata: { name: `${user}-${verb}`, ...of } };
    const rules = [{ apiGroups: ['kubevirt.io'], resources: ['virtualmachines'], verbs: [verb] }];
    await scene.front.create(`${path}${prefix.toLowerCase()}roles`, { ...base, kind: `${prefix}Role`, rules });
    const roleRef = { apiGroup, kind: `${prefix}Role`, name: base.metadata.name };
    const subjects = [{ kind: 'User', apiGroup, name: user }];
    const binding = { ...base, kind: `${prefix}RoleBinding`, roleRef, subjects };
    await scene.front.create(`${path}${prefix.toLowerCase()}rolebindings`, binding);
  }

  test('protects the VMs that a selector matches', async () => {
    const create = async (namespace: string, name: string, tier: string) => {
      const { kind } = VIRTUAL_MACHINES;
      const spec = { runStrategy: 'Halted', template: { spec: { domain: { devices: {} } } } };
      const metadata = { namespace, name, labels: { tier } };
      await scene.admin.create(VIRTUAL_MACHINES, { apiVersion: apiVersionOf(VIRTUAL_MACHINES), kind, metadata, spec });
    };
    for (const name of ['sales', 'stock']) {
      await scene.front.create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    }
    await create('sales', 'db-1', 'db');
    await create('sales', 'db-2', 'db');
    await create('sales', 'web', 'web');
    await create('stock', 'db-1', 'db');
    const protectedNames = async () => {
      const { items } = await scene.admin.list(VIRTUAL_MACHINES, { labelSelector: `${LABEL}=true,tier` });
      return items.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);
    };

    assert.deepEqual(await scene.virtctl('protect', '-l', 'tier=cache', '-n', 'sales'), {
      code: 0,
      out: 'No VM matches the selector "tier=cache"\n',
      err: '',
    });
    assert.deepEqual(await scene.virtctl('protect', '--selector', 'tier=db', '-n', 'sales', '--reason=ledger'), {
      code: 0,
      out: 'VM db-1 is protected from deletion\nVM db-2 is protected from deletion\n2 VMs are protected from deletion\n',
      err: '',
    });
    assert.deepEqual(await protectedNames(), ['sales/db-1', 'sales/db-2']);
    assert.deepEqual(await scene.virtctl('unprotect', '-l', 'tier in (db)', '--all-namespaces', '--dry-run'), {
      code: 0,
      out: [
        'Dry Run execution',
        'VM sales/db-1 is no longer protected from deletion',
        'VM sales/db-2 is no longer protected from deletion',
        'VM stock/db-1 is no longer protected from deletion',
        '3 VMs are no longer protected from deletion\n',
      ].join('\n'),
      err: '',
    });
    assert.deepEqual(await protectedNames(), ['sales/db-1', 'sales/db-2']);

    await allow('eve', { verb: 'list' });
    await allow('eve', { verb: 'patch', namespace: 'stock' });
    const forbidden = (name: string) =>
      `  sales/${name}: virtualmachines.kubevirt.io "${name}" is forbidden: User "eve" cannot patch resource "virtualmachines" in API group "kubevirt.io" in the namespace "sales"\n`;
    assert.deepEqual(await scene.virtctl('protect', '-A', '-l', 'tier=db', '--as', 'eve'), {
      code: 1,
      out: 'VM stock/db-1 is protected from deletion\n1 VM is protected from deletion\n',
      err: `error: Cannot protect 2 of 3 VMs:\n${forbidden('db-1')}${forbidden('db-2')}`,
    });
    assert.deepEqual(await protectedNames(), ['sales/db-1', 'sales/db-2', 'stock/db-1']);
  });

  test('shows each warning of the server once', async () => {
    const policy = { apiVersion: 'admissionregistration.k8s.io/v1', metadata: { name: 'unwise' } };
    const path = '/apis/admissionregistration.k8s.io/v1';
    await scene.front.create(`${path}/validatingadmissionpolicies`, {
      ...policy,
      kind: 'ValidatingAdmissionPolicy',
      spec: {
        matchConstraints: {
          resourceRules: [
            { apiGroups: ['kubevirt.io'], apiVersions: ['v1'], resources: ['virtualmachines'], operations: ['UPDATE'] },
          ],
        },
        matchConditions: [
          { name: 'ours', expression: "has(object.metadata.labels) && 'unwise' in object.metadata.labels" },
        ],
        validations: [{ expression: 'false', message: 'it is "unwise"' }],
      },
    });
    await scene.front.create(`${path}/validatingadmissionpolicybindings`, {
      ...policy,
      kind: 'ValidatingAdmissionPolicyBinding',
      spec: { policyName: 'unwise', validationActions: ['Warn'] },
    });
    const names = [scene.newName(), scene.newName()];
    for (const name of names) {
      await scene.createVm(name, { runStrategy: 'Halted' });
      const body = { metadata: { labels: { unwise: 'yes' } } };
      await scene.admin.patch(VIRTUAL_MACHINES, { namespace: 'default', name }, { type: 'merge', body });
    }
    const { code, out, err } = await scene.virtctl('protect', '-l', 'unwise');
    assert.deepEqual([code, out.split('\n').length], [0, 4]);
    assert.match(err, /^Warning: [^\n]*it is "unwise"\n$/);
  });

  test('prints the commands of a group', async () => {
    const { out } = await scene.virtctl('identity');
    assert.match(out, /^Inspect the identity of virtual machines\.\n\nAvailable Commands:\n {2}diff {9}Show /);
    assert.equal((await scene.virtctl('identity', '--help')).out, out);
    const help = await scene.virtctl('help', 'identity', 'duplicates');
    assert.match(help.out, /\nUsage:\n {2}virtctl identity duplicates \[flags\]\n/);
  });

  async function openConsole(name: string) {
    const [stdin, stdout] = [new PassThrough(), new Sink()];
    const ended = scene.virtctlInteractive(stdin, stdout, 'console', name);
    const awaitText = async (text: string) => {
      while (!stdout.text.includes(text)) await once(stdout, 'grown');
    };
    await awaitText('login: ');
    return { stdin, stdout, shows: awaitText, ended };
  }

  test('a console works in both directions until Ctrl-]', async () => {
    const name = scene.newName();
    await scene.createVmi(name, RUNS);
    scene.node.run(name);
    const { stdin, shows, ended } = await openConsole(name);
    stdin.write('root\n');
    await shows('login: ROOT\n');
    const guest = scene.node.consoles.get(name)!;
    stdin.write('x\u001Dlost');
    const { code, err } = await ended;
    assert.equal(code, 0);
    assert.match(err, /^Successfully connected to vm-\d+ console\. Press Ctrl\+\] or Ctrl\+5 to exit console\.\n$/);
    if (!guest.destroyed) await once(guest, 'close');
  });

  test('a console ends with the guest', async () => {
    const name = scene.newName();
    await scene.createVmi(name, RUNS);
    scene.node.run(name);
    const { ended, stdout } = await openConsole(name);
    scene.node.consoles.get(name)!.end('Power down.\n');
    assert.equal((await ended).code, 0);
    assert.equal(stdout.text, 'login: POWER DOWN.\n', 'its last output is not lost');
  });

  test('a console of an instance that does not exist is refused', async () => {
    const message =
      'Cannot connect to the console of VMI nobody: virtualmachineinstance.kubevirt.io "nobody" not found in namespace "default"; ...';
    assertRefused(await scene.virtctl('console', 'nobody'), message);
    assertRefused(await scene.virtctl('console', 'vm/nobody'), message);
  });

  test('a console waits for a guest that does not run yet, but not for ever', async () => {
    const name = scene.newName();
    await scene.createVmi(name, { phase: 'Scheduling' });
    const { code, err } = await scene.virtctl('console', '--timeout=0', name);
    assert.equal(code, 1);
    assert.match(err, /^error: Cannot connect to the console of VMI \S+ in time: .*VMI is not running\n$/);
  });
});
