/** virtctl migrate and migrate-cancel against the real API, on which only the test migrates guests. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { after, before, suite, test } from 'node:test';
import { VIRTUAL_MACHINE_INSTANCE_MIGRATIONS } from '#api/virtual-machine-instance-migration/kind.ts';
import {
  assertRefused,
  Sink,
  startSubresourcesScene,
  type SubresourcesScene,
} from '#test/scenarios/subresources-scene.ts';
import type { Loose } from '#test/support/test-api.ts';

const TYPE = VIRTUAL_MACHINE_INSTANCE_MIGRATIONS;

let scene: SubresourcesScene;
const cleanups: (() => unknown)[] = [];

before(async () => {
  scene = await startSubresourcesScene({ after: (fn) => cleanups.push(fn) });
});
after(async () => {
  await scene?.stop();
  for (const cleanup of cleanups) await cleanup();
});

/**
 * Creates a running VM whose name is too long for a label. Without a webhook migrations have no label and must be found
 * without it.
 */
async function createRunning(): Promise<string> {
  const name = `${scene.newName()}-${'x'.repeat(63)}`;
  await scene.createVm(name, { runStrategy: 'Always' });
  await scene.createVmi(name, { phase: 'Running' });
  return name;
}

async function migrationsOf(vmiName: string) {
  const { items } = await scene.admin.list(TYPE, { namespace: 'default' });
  return items.filter(({ spec }) => spec.vmiName === vmiName);
}

const setStatus = (name: string, status: Loose) => scene.patchStatus(TYPE, name, status);

suite('virtctl', () => {
  test('migrates, and cancels the migration', async () => {
    const vm = await createRunning();
    const dry = await scene.virtctl('migrate', '--dry-run', vm);
    assert.deepEqual(dry, { code: 0, out: `Dry Run execution\nVM ${vm} was scheduled to migrate\n`, err: '' });
    assert.deepEqual(await migrationsOf(vm), []);

    const argv = ['migrate', vm, '--addedNodeSelector', 'zone=b,rack=1'];
    assert.deepEqual(await scene.virtctl(...argv), { code: 0, out: `VM ${vm} was scheduled to migrate\n`, err: '' });
    const [made] = await migrationsOf(vm);
    assert.deepEqual(made?.spec.addedNodeSelector, { zone: 'b', rack: '1' });

    const name = made?.metadata.name ?? '';
    const canceled = await scene.virtctl('migrate-cancel', vm);
    assert.deepEqual(canceled, { code: 0, out: `Migration ${name} of VM ${vm} is being canceled\n`, err: '' });
    assert.deepEqual(await migrationsOf(vm), []);
  });

  test('cancels only a migration in progress', async () => {
    const vm = await createRunning();
    const none = { code: 1, out: '', err: `error: Cannot cancel the migration of VM ${vm}: it is not migrating\n` };
    assert.deepEqual(await scene.virtctl('migrate-cancel', vm), none);
    await scene.virtctl('migrate', vm);
    const [made] = await migrationsOf(vm);
    await setStatus(made?.metadata.name ?? '', { phase: 'Succeeded' });
    assert.deepEqual(await scene.virtctl('migrate-cancel', vm), none);
  });

  test('reports why a VM cannot migrate', async () => {
    const missing = await scene.virtctl('migrate', 'nobody');
    const err = 'Cannot migrate VM nobody: virtualmachine.kubevirt.io "nobody" not found in namespace "default"; ...';
    assertRefused(missing, err);
    const wrong = await scene.virtctl('migrate', 'db', '--addedNodeSelector=zone');
    assert.match(
      wrong.err,
      /^error: invalid argument "zone" for "--addedNodeSelector" flag: zone must be formatted as key=value/,
    );
  });

  for (const [end, status, want] of [
    [
      'arrives',
      {
        phase: 'Succeeded',
        migrationState: { sourceNode: 'node-1', targetNode: 'node-2' },
        migrationProgress: { migrationUid: 'm', phase: 'Committed', downtimeMs: 40 },
      },
      {
        code: 0,
        out: (vm: string) => `VM ${vm} migrated from node-1 to node-2; downtime 40 ms\n`,
        err: () => '',
      },
    ],
    [
      'fails',
      { phase: 'Failed', migrationState: { failureReason: 'no way' } },
      {
        code: 1,
        out: () => '',
        err: (vm: string, name: string) => `error: Migration ${name} of VM ${vm} failed: no way\n`,
      },
    ],
  ] as const) {
    test(`waits until the guest ${end}`, async () => {
      const vm = await createRunning();
      const out = new Sink();
      const done = scene.virtctlInteractive(Readable.from([]), out, 'migrate', vm, '--wait');
      // The migration has been created.
      await once(out, 'grown');
      assert.equal(out.text, `VM ${vm} was scheduled to migrate\n`);
      const [made] = await migrationsOf(vm);
      const name = made?.metadata.name ?? '';
      await setStatus(name, status);
      const { code, err: said } = await done;
      assert.equal(code, want.code, said);
      assert.equal(out.text, `VM ${vm} was scheduled to migrate\n${want.out(vm)}`);
      assert.ok(said.endsWith(want.err(vm, name)), said);
    });
  }
});
