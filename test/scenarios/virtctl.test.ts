/** virtctl against the real API, a real node endpoint and guests that are only pretended. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { after, before, beforeEach, suite, test } from 'node:test';
import { Sink, startScene, type Scene } from '#test/scenarios/subresources-scene.ts';

const RUNS = { phase: 'Running' };

let scene: Scene;
const cleanups: (() => unknown)[] = [];

before(async () => {
  scene = await startScene({ after: (fn) => cleanups.push(fn) });
});
after(async () => {
  await scene?.stop();
  for (const cleanup of cleanups) await cleanup();
});
beforeEach(() => void (scene.node.done.length = 0));

suite('virtctl', () => {
  test('starts, restarts and stops', async () => {
    const name = scene.aName();
    await scene.aVm(name, { runStrategy: 'Halted' });
    const dry = await scene.virtctl('start', '--dry-run', name);
    assert.deepEqual(dry, { code: 0, out: `Dry Run execution\nVM ${name} was scheduled to start\n`, err: '' });
    assert.equal((await scene.readVm(name)).spec.runStrategy, 'Halted');
    assert.deepEqual(await scene.virtctl('start', name), {
      code: 0,
      out: `VM ${name} was scheduled to start\n`,
      err: '',
    });
    assert.equal((await scene.readVm(name)).spec.runStrategy, 'Always');
    await scene.aVmi(name, RUNS);
    assert.equal((await scene.virtctl('restart', name)).out, `VM ${name} was scheduled to restart\n`);
    const forced = await scene.virtctl('stop', name, '--force', '--grace-period=0');
    assert.equal(forced.out, `VM ${name} was scheduled to stop\n`);
    assert.equal((await scene.readVmi(name)).spec.terminationGracePeriodSeconds, 0);
  });

  const refusals: Record<string, { argv: string[]; err: string }> = {
    'a VM that is not there': {
      argv: ['start', 'nobody'],
      err: 'Error starting VirtualMachine virtualmachine.kubevirt.io "nobody" not found\n',
    },
    'a stop of it': {
      argv: ['stop', 'nobody'],
      err: 'error stopping VirtualMachine virtualmachine.kubevirt.io "nobody" not found\n',
    },
    'a restart of it': {
      argv: ['restart', 'nobody'],
      err: 'error restarting VirtualMachine: virtualmachine.kubevirt.io "nobody" not found\n',
    },
    'force without a time': {
      argv: ['stop', 'db', '--force'],
      err: 'Must both use --force=true and set --grace-period.\n',
    },
    'a pause of nobody': {
      argv: ['pause', 'vm', 'nobody'],
      err: 'Error getting VirtualMachine nobody: virtualmachines.kubevirt.io "nobody" not found\n',
    },
    'a pause of another kind': {
      argv: ['pause', 'pod', 'db'],
      err: 'unsupported resource type "pod"; expected vm or vmi\n',
    },
    'an unknown command': { argv: ['explode'], err: 'unknown command "explode" for "virtctl"\n' },
    'an unknown flag': { argv: ['start', 'db', '--now'], err: 'unknown flag: --now\n' },
    'too few words': { argv: ['pause', 'vm'], err: 'accepts 2 arg(s), received 1\n' },
  };
  for (const [title, { argv, err }] of Object.entries(refusals)) {
    test(`refuses ${title}`, async () => {
      assert.deepEqual(await scene.virtctl(...argv), { code: 1, out: '', err });
    });
  }

  test('pauses through the VM, and says when the VM is not to run', async () => {
    const name = scene.aName();
    await scene.aVm(name, { runStrategy: 'Halted' });
    assert.equal(
      (await scene.virtctl('pause', 'vm', name)).err,
      `Error pausing VirtualMachineInstance ${name}. VirtualMachine ${name} is not set to run\n`,
    );
    await scene.aVmi(name, RUNS);
    scene.node.run(name);
    assert.equal((await scene.virtctl('pause', 'vm', name)).out, `VMI ${name} was scheduled to pause\n`);
    assert.equal((await scene.virtctl('soft-reboot', name)).code, 1, 'the guest is paused');
    assert.equal((await scene.virtctl('reset', name)).out, `VMI ${name} was scheduled to reset\n`);
    assert.deepEqual(scene.node.done, [`pause ${name}`, `reset ${name}`]);
  });

  test('tells both versions', async () => {
    const { out } = await scene.virtctl('version');
    assert.match(
      out,
      /^Client Version: version.Info\{GitVersion:"v.*\nServer Version: version.Info\{GitVersion:"v.*\n$/,
    );
    assert.doesNotMatch((await scene.virtctl('version', '-c')).out, /Server/);
  });

  async function attached(name: string) {
    const [stdin, stdout] = [new PassThrough(), new Sink()];
    const ended = scene.virtctlWith(stdin, stdout, 'console', name);
    const shows = async (text: string) => {
      while (!stdout.text.includes(text)) await once(stdout, 'grown');
    };
    await shows('login: ');
    return { stdin, stdout, shows, ended };
  }

  test('a console goes both ways until Ctrl-]', async () => {
    const name = scene.aName();
    await scene.aVmi(name, RUNS);
    scene.node.run(name);
    const { stdin, shows, ended } = await attached(name);
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
    const name = scene.aName();
    await scene.aVmi(name, RUNS);
    scene.node.run(name);
    const { ended, stdout } = await attached(name);
    scene.node.consoles.get(name)!.end('Power down.\n');
    assert.equal((await ended).code, 0);
    assert.equal(stdout.text, 'login: POWER DOWN.\n', 'its last words are not lost');
  });

  test('a console of nobody', async () => {
    assert.deepEqual(await scene.virtctl('console', 'nobody'), {
      code: 1,
      out: '',
      err: 'virtualmachineinstance.kubevirt.io "nobody" not found\n',
    });
  });

  test('a console of a guest that does not run yet is waited for, but not for ever', async () => {
    const name = scene.aName();
    await scene.aVmi(name, { phase: 'Scheduling' });
    const { code, err } = await scene.virtctl('console', '--timeout=0', name);
    assert.equal(code, 1);
    assert.match(err, /^Timeout trying to connect to the virtual machine instance: .*VMI is not running\n$/);
  });
});
