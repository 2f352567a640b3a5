/** The serial console. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { CONSOLE_LOG_BYTES, HypervisorError, LOG_BYTES } from '#node/hypervisor/hypervisor.ts';
import { hasEnded, startGuest, waitUntil, type Cases } from '#node/hypervisor/testing/scene.ts';

export const consoleCases: Cases = {
  'shows the same output on all consoles': async (scene) => {
    const id = await startGuest(scene);
    const consoles = await Promise.all([scene.hypervisor.openConsole(id), scene.hypervisor.openConsole(id)]);
    if (scene.echoesInput) {
      const received = consoles.map((console) => waitForText(console, 'hello there'));
      consoles[0].write('hello there\r');
      await Promise.all(received);
    }
    for (const console of consoles) console.destroy();
  },

  'keeps the guest and the other consoles when one is closed': async (scene) => {
    const id = await startGuest(scene);
    const [left, stays] = await Promise.all([scene.hypervisor.openConsole(id), scene.hypervisor.openConsole(id)]);

    left.destroy();
    await once(left, 'close');

    assert.equal(stays.destroyed, false);
    if (scene.echoesInput) {
      const received = waitForText(stays, 'still here');
      stays.write('still here\r');
      await received;
    }
    assert.deepEqual(scene.hypervisor.get(id)?.current, { state: 'running' });
    stays.destroy();
  },

  'ends consoles with the guest': async (scene) => {
    const id = await startGuest(scene);
    const console = await scene.hypervisor.openConsole(id);
    console.resume();
    const closed = once(console, 'close');

    await scene.hypervisor.destroy(id);

    await closed;
  },

  'ends consoles when the guest dies': async (scene) => {
    const id = await startGuest(scene);
    const console = await scene.hypervisor.openConsole(id);
    // Some hypervisors report it as an error, some as the end.
    console.on('error', () => undefined).resume();
    const closed = new Promise((resolve) => console.once('close', resolve));

    await scene.killGuest(id);

    await closed;
  },

  'keeps the console log until the domain is removed': async (scene) => {
    const id = await startGuest(scene);
    if (scene.echoesInput) {
      const console = await scene.hypervisor.openConsole(id);
      const received = waitForText(console, 'remember me');
      console.write('remember me\r');
      await received;
    }

    await scene.hypervisor.destroy(id);
    await waitUntil(scene.hypervisor, id, hasEnded);

    const log = await scene.hypervisor.readConsoleLog(id);
    assert.ok(log.length <= CONSOLE_LOG_BYTES);
    assert.equal(log.includes('remember me'), scene.echoesInput);
  },

  'returns the hypervisor log, limited in size, until the domain is removed': async (scene) => {
    const id = await startGuest(scene);
    assert.ok((await scene.hypervisor.readLog(id)).length <= LOG_BYTES);

    await scene.hypervisor.destroy(id);
    await scene.hypervisor.readLog(id);
    await scene.hypervisor.remove(id);

    await assert.rejects(scene.hypervisor.readLog(id), HypervisorError);
  },
};

/** Resolves when the text has arrived; the test's timeout is the limit. */
function waitForText(console: Duplex, text: string): Promise<void> {
  let all = '';
  return new Promise((resolve, reject) => {
    console.on('data', (bytes: Buffer) => {
      all += bytes.toString('latin1');
      if (all.includes(text)) resolve();
    });
    console.on('error', reject);
    console.on('end', () => reject(new Error(`the console ended after ${JSON.stringify(all)}`)));
  });
}
