/** virtctl as a process on a real pseudo terminal (script of util-linux) and on a pipe: progress, colours and Ctrl-C. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { systemClock } from '#lib/clock.ts';
import type { DiskUpload } from '#node/volumes/volumes-port.ts';
import { kubeconfigOf } from '#test/scenarios/subresources-scene.ts';
import { DiskScene } from '#test/support/disk-scene.ts';

const VIRTCTL = join(import.meta.dirname, '../../virtctl');
const MIB = 1024 * 1024;
const [HIDE_CURSOR, SHOW_CURSOR, CLEAR_LINE] = ['\u001b[?25l', '\u001b[?25h', '\r\u001b[2K'];
// oxlint-disable-next-line no-control-regex
const CONTROLS = /[\u0000-\u0009\u000b-\u001f]/;

let disks: DiskScene;
before(async () => {
  disks = await DiskScene.start();
  writeFileSync(join(disks.dir, 'kubeconfig'), kubeconfigOf(disks.scene.front.admin));
  writeFileSync(join(disks.dir, 'a.raw'), Buffer.alloc(24 * MIB, '\x55\xaa', 'latin1'));
});
after(async () => await disks?.stop());

/** Delays each chunk, so that the bar is drawn several times. */
const slowly = (one: DiskUpload): DiskUpload => ({
  ...one,
  async receive(header, chunks, options) {
    async function* delayed() {
      for await (const chunk of chunks) {
        await new Promise<void>((resolve) => void systemClock.after(3, resolve));
        yield chunk;
      }
    }
    await one.receive(header, delayed(), options);
  },
});

interface Run {
  readonly env?: Record<string, string>;
  /** Called with all output so far, and a function that types. */
  readonly watch?: (output: string, type: (text: string) => void) => void;
}

/** Runs a command and returns its output. `terminal` runs it on a pseudo terminal of 80 columns. */
async function run(where: 'terminal' | 'pipe', words: string, { env = {}, watch }: Run = {}): Promise<string> {
  const command = `${VIRTCTL} --kubeconfig ${join(disks.dir, 'kubeconfig')} ${words}`;
  const shell = where === 'terminal' ? `stty cols 80; exec ${command}` : command;
  const file = where === 'terminal' ? 'script' : 'sh';
  const args = where === 'terminal' ? ['-qec', `sh -c '${shell}'`, '/dev/null'] : ['-c', `${shell} 2>&1`];
  const child = spawn(file, args, {
    env: { PATH: process.env['PATH'], HOME: disks.dir, TERM: 'xterm-256color', ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  child.stdin.on('error', () => {});
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString();
    watch?.(output, (text) => child.stdin.write(text));
  });
  await once(child, 'close');
  return output;
}

const uploadTo = async (claim: string) => {
  await disks.createVolumeFor(claim, '32Mi');
  disks.wrap = slowly;
  return `image-upload pvc ${claim} --image-path ${join(disks.dir, 'a.raw')} --size=32Mi --storage-class=manual`;
};

suite('virtctl on a terminal', () => {
  test('draws a bar in place, and keeps the last line', async () => {
    const output = await run('terminal', await uploadTo('bar'));
    const states = output.split(CLEAR_LINE).slice(1);
    const bars = states.filter((state) => /^\S* \[=*>? *\] +\d+% [\d.]+ MiB of 24\.0 MiB, .*\/s/.test(state));
    assert.ok(bars.length > 1, output);
    for (const bar of bars) assert.ok(bar.trimEnd().length < 80, bar);
    assert.match(states.at(-1)!, /a\.raw: done, 24\.0 MiB at \S+ \S+\/s\r\n/);
    assert.match(output, /Uploading .* completed successfully/);
    assert.equal(output.split(HIDE_CURSOR).length, output.split(SHOW_CURSOR).length);
  });

  test('shows the cursor again after Ctrl-C', async () => {
    let isTyped = false;
    const output = await run('terminal', await uploadTo('stopped'), {
      watch(text, type) {
        if (isTyped || !text.includes('[=')) return;
        isTyped = true;
        type('\u0003');
      },
    });
    assert.ok(output.endsWith(`\r\n${SHOW_CURSOR}`), JSON.stringify(output.slice(-200)));
    assert.doesNotMatch(output, /completed successfully/);
  });

  const plain: Record<string, { claim: string; env: Record<string, string> }> = {
    'a dumb terminal': { claim: 'dumb', env: { TERM: 'dumb' } },
    'the terminal of a CI system': { claim: 'ci', env: { CI: 'true', NO_COLOR: '1' } },
  };
  for (const [title, { claim, env }] of Object.entries(plain)) {
    test(`prints plain lines on ${title}`, async () => {
      const output = await run('terminal', await uploadTo(claim), { env });
      assert.doesNotMatch(output.replaceAll('\r\n', '\n'), CONTROLS);
      assert.match(output, /a\.raw: 24\.0 MiB\r\n(?:.*\r\n)*.*a\.raw: done, /);
    });
  }

  test('prints plain lines to a pipe', async () => {
    const output = await run('pipe', await uploadTo('pipe'));
    assert.doesNotMatch(output, CONTROLS);
    assert.match(output, /a\.raw: 24\.0 MiB\n(?:.*\n)*.*a\.raw: done, .*\n.*completed successfully/);
  });

  test('colours warnings on a terminal, unless NO_COLOR is set', async () => {
    const words = `${await uploadTo('colours')} --uploadproxy-url x`;
    assert.ok((await run('terminal', words)).includes('\u001b[33mWarning:\u001b[39m --uploadproxy-url is ignored'));
    const plain = await run('terminal', `${words} --replace`, { env: { NO_COLOR: '1' } });
    assert.match(plain, /^Warning: --uploadproxy-url is ignored/m);
  });
});
