/**
 * Takes a screenshot of the display: QEMU writes it to a file in its working directory, which is read and removed. A
 * compromised QEMU may write anything, so only a regular file of limited size with a PNG signature is accepted.
 */
import { constants } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { newUid } from '#lib/ids.ts';
import { SCREENSHOT_BYTES } from '#node/hypervisor/hypervisor.ts';
import type { QmpClient } from '#node/hypervisor/qemu/monitor/qmp.ts';

const PNG = Buffer.from('89504e470d0a1a0a', 'hex');

interface ScreenshotOptions {
  /** The working directory of QEMU. */
  readonly run: string;
  readonly moveCursor: boolean;
}

export async function takeScreenshot(qmp: QmpClient, { run, moveCursor }: ScreenshotOptions): Promise<Buffer> {
  if (moveCursor) await wakeScreen(qmp);
  const name = `screenshot-${newUid()}.png`;
  const path = join(run, name);
  try {
    await qmp.execute('screendump', { filename: name, format: 'png' });
    return await readScreenshot(path);
  } finally {
    await rm(path, { force: true });
  }
}

/** Moves the pointer forth and back, which is enough to end a screensaver. */
async function wakeScreen(qmp: QmpClient): Promise<void> {
  for (const value of [1, -1]) {
    await qmp.execute('input-send-event', { events: [{ type: 'rel', data: { axis: 'x', value } }] });
  }
}

/** Follows no links and does not block on a pipe. */
async function readScreenshot(path: string): Promise<Buffer> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const stats = await file.stat();
    if (!stats.isFile()) throw new Error('the screenshot from QEMU is not a regular file');
    if (stats.size > SCREENSHOT_BYTES) throw new Error(`the screenshot is larger than ${SCREENSHOT_BYTES} bytes`);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(stats.size), 0, stats.size, 0);
    const picture = buffer.subarray(0, bytesRead);
    if (!picture.subarray(0, PNG.length).equals(PNG)) throw new Error('the screenshot from QEMU is not a PNG');
    return picture;
  } finally {
    await file.close();
  }
}
