/** The display of a guest with a video card. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { HypervisorError, SCREENSHOT_BYTES } from '#node/hypervisor/hypervisor.ts';
import type { VideoDevice } from '#node/hardware/domain-definition.ts';
import { startGuest, type Cases, type ConformanceScene } from '#node/hypervisor/testing/scene.ts';

export const displayCases: Cases = {
  'opens separate connections to the display': async (scene) => {
    const id = await startGuestWithCard(scene);
    const displays = await Promise.all([scene.hypervisor.openDisplay(id), scene.hypervisor.openDisplay(id)]);

    for (const display of displays) assert.match(await readFirstText(display), /^RFB 003\.00[378]\n$/);
    for (const display of displays) display.destroy();
    assert.deepEqual(scene.hypervisor.get(id)?.current, { state: 'running' });
  },

  'ends displays with the guest': async (scene) => {
    const id = await startGuestWithCard(scene);
    const display = await scene.hypervisor.openDisplay(id);
    display.on('error', () => undefined).resume();
    const closed = new Promise((resolve) => display.once('close', resolve));

    await scene.hypervisor.destroy(id);

    await closed;
    await assert.rejects(scene.hypervisor.openDisplay(id), HypervisorError);
  },

  'opens the display of a guest that another process started': async (scene) => {
    const id = await startGuestWithCard(scene);
    const next = await scene.reopen();
    await next.adopt();

    const display = await next.openDisplay(id);
    assert.match(await readFirstText(display), /^RFB /);
    display.destroy();
  },

  'refuses the display of a guest without a graphics card': async (scene) => {
    const id = await startGuest(scene);

    await assert.rejects(
      scene.hypervisor.openDisplay(id),
      /Cannot open the display of domain ".*": the guest has no display/,
    );
    await assert.rejects(
      scene.hypervisor.screenshot(id, { moveCursor: false }),
      /Cannot take a screenshot of domain ".*": the guest has no display/,
    );
  },

  'takes screenshots, also of a paused guest': async (scene) => {
    const id = await startGuestWithCard(scene);
    for (const moveCursor of [false, true]) {
      checkScreenshot(await scene.hypervisor.screenshot(id, { moveCursor }));
    }
    await scene.hypervisor.pause(id);

    checkScreenshot(await scene.hypervisor.screenshot(id, { moveCursor: false }));
  },

  'takes several screenshots at the same time': async (scene) => {
    const id = await startGuestWithCard(scene);
    const pictures = [1, 2, 3].map(() => scene.hypervisor.screenshot(id, { moveCursor: false }));

    for (const picture of await Promise.all(pictures)) checkScreenshot(picture);
  },
};

const CARD: VideoDevice = {
  type: 'video',
  id: 'display0',
  model: 'vga',
  address: { type: 'pci', domain: '0x0000', bus: '0x00', slot: '0x01', function: '0x0' },
};

async function startGuestWithCard({ hypervisor, definition }: ConformanceScene): Promise<string> {
  const plain = definition();
  await hypervisor.create({ ...plain, devices: [...plain.devices, CARD] });
  return plain.id;
}

/** Checks for a PNG of at least one pixel; the firmware decides the size of the screen. */
function checkScreenshot(picture: Buffer): void {
  assert.equal(picture.toString('latin1', 1, 4), 'PNG');
  assert.equal(picture.toString('latin1', 12, 16), 'IHDR');
  assert.ok(picture.readUInt32BE(16) > 0 && picture.readUInt32BE(20) > 0);
  assert.ok(picture.length <= SCREENSHOT_BYTES);
}

async function readFirstText(display: Duplex): Promise<string> {
  const [bytes] = (await once(display, 'data')) as [Buffer];
  return bytes.toString('latin1');
}
