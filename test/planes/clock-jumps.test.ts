/**
 * The wall clock of all machines jumps, as after a wrong time server or an empty battery. Timers follow the monotonic
 * clock, so guests and nodes notice nothing, and nothing is lost.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  aMigration,
  assertInvariants,
  locateGuest,
  migrationPhase,
  startMigratingVm,
  VM,
  writeEverywhere,
} from '#test/support/migrating-vm.ts';
import { startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

const DAY_MS = 86_400_000;
/** Longer than leases, grace periods and backoffs. */
const LATER_MS = 10 * 60_000;
const JUMPS: Readonly<Record<string, number>> = {
  'an hour forwards': DAY_MS / 24,
  'ten years forwards': 3650 * DAY_MS,
  'twenty years backwards': -7300 * DAY_MS,
};

async function assertUndisturbed(plane: VmPlane, starts: number): Promise<void> {
  await assertInvariants(plane, 'text');
  assert.equal(plane.starts.length, starts, 'no guest was started again');
  for (const { metadata, spec, status } of await plane.list('Node')) {
    const ready = status.conditions.find(({ type }: { type: string }) => type === 'Ready');
    assert.deepEqual([ready.status, spec.taints ?? []], ['True', []], metadata.name);
  }
}

describe('a jump of the wall clock', () => {
  it('disturbs neither guests nor nodes, and the next migration succeeds', async (t) => {
    const plane = await startVmPlane(t);
    await startMigratingVm(plane);
    await writeEverywhere(plane, 'text');
    let starts = plane.starts.length;
    for (const [index, [name, ms]] of Object.entries(JUMPS).entries()) {
      await t.test(name, async () => {
        plane.clock.setWallClockBy(ms);
        await plane.advance(LATER_MS);
        await assertUndisturbed(plane, starts);
        await plane.apply(aMigration(`m${index}`));
        assert.equal(await migrationPhase(plane, `m${index}`), 'Succeeded');
        starts = plane.starts.length;
        await assertUndisturbed(plane, starts);
      });
    }
  });

  it('during a migration loses nothing: the guest arrives or stays, and the next migration succeeds', async (t) => {
    const plane = await startVmPlane(t);
    await startMigratingVm(plane);
    await writeEverywhere(plane, 'text');
    for (const [index, ms] of Object.values(JUMPS).entries()) {
      const { node } = locateGuest(plane);
      let hasJumped = false;
      plane.streams.onMessage = () => {
        if (!hasJumped) plane.clock.setWallClockBy(ms);
        hasJumped = true;
      };
      await plane.apply(aMigration(`disturbed${index}`));
      assert.ok(hasJumped);
      // The time since the start of a migration is that between two times in its status: it may seem to take too long.
      const outcome = await migrationPhase(plane, `disturbed${index}`);
      assert.match(outcome, /^(Succeeded|Failed: the migration was cancelled|gone)$/);
      if (outcome !== 'gone') assert.equal(locateGuest(plane).node !== node, outcome === 'Succeeded');
      await assertInvariants(plane, 'text');
      const { node: current } = locateGuest(plane);
      await plane.apply(aMigration(`next${index}`));
      // Its object may be removed as the oldest one, so that only the guest shows the outcome.
      assert.notEqual(locateGuest(plane).node, current);
      await assertInvariants(plane, 'text');
    }
  });

  it('does not let a crashed guest wait for the wrong time', async (t) => {
    const plane = await startVmPlane(t);
    await startMigratingVm(plane);
    for (const ms of Object.values(JUMPS)) {
      const starts = plane.starts.length;
      plane.guest(VM).crash('it failed');
      plane.clock.setWallClockBy(ms);
      await plane.advance(LATER_MS);
      assert.equal(plane.starts.length, starts + 1, 'it was started once more');
    }
  });
});
