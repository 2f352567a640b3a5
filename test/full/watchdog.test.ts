/** Expired watchdogs of real guests: what the plane does and reports when they switch the guest off or shut it down. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { GUEST_IMAGE } from '#api/names.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';
import { startRealPlane, type RealPlane } from '#test/support/real-guests.ts';

const EVENTS: ResourceType<KubeObject & { message?: string; reason?: string; involvedObject?: { name?: string } }> = {
  ...{ group: '', version: 'v1', kind: 'Event', plural: 'events', namespaced: true },
};
const cleanUps: (() => unknown)[] = [];
let plane: RealPlane;

before(async () => {
  plane = await startRealPlane({ after: (fn) => void cleanUps.unshift(fn) }, { nodes: 1 });
});
after(async () => {
  for (const cleanUp of cleanUps) await cleanUp();
});

const cases = {
  poweroff: { phase: 'Failed', text: 'is switched off' },
  shutdown: { phase: 'Succeeded', text: 'is asked to shut down' },
} as const;

for (const [action, { phase, text }] of Object.entries(cases)) {
  test(`${action}: the instance is ${phase}, with an Event`, { timeout: 600_000 }, async () => {
    await plane.create(VIRTUAL_MACHINES, {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachine',
      metadata: { name: action, namespace: 'default' },
      spec: {
        runStrategy: 'Once',
        template: {
          spec: {
            domain: {
              memory: { guest: '128Mi' },
              firmware: {
                kernelBoot: { kernelArgs: 'console=ttyS0 quiet no_timer_check', container: { image: GUEST_IMAGE } },
              },
              devices: { watchdog: { name: 'w', i6300esb: { action: action as keyof typeof cases } } },
            },
          },
        },
      },
    });
    const guest = plane.guest(action);
    await guest.awaitBoot();
    await guest.runCommand('watchdog 2', /GUEST watchdog runs/);
    await guest.awaitVmi(`it is ${phase}`, (vmi) => vmi?.status?.phase === phase);
    const { items } = await plane.client.list(EVENTS, { namespace: 'default' });
    const messages = items
      .filter(({ involvedObject }) => involvedObject?.name === action)
      .map(({ message }) => message);
    assert.ok(messages.includes(`The guest did not reset its watchdog in time and ${text}.`), JSON.stringify(messages));
  });
}
