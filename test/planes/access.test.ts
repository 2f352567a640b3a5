/** Access to a guest: console, display and ports, as virtctl and other KubeVirt clients use them. */
import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { after, before, beforeEach, suite, test } from 'node:test';
import type { Programs } from '#cli/programs.ts';
import {
  assertRefused,
  PICTURE,
  Sink,
  startSubresourcesScene,
  type SubresourcesScene,
} from '#test/scenarios/subresources-scene.ts';
import { sendHttp1Request } from '#test/support/raw-https.ts';

const RUNS = { phase: 'Running' };
const IN_NAMESPACE = '/apis/subresources.kubevirt.io/v1/namespaces/default';
const NO_PROGRAMS: Programs = {
  find: async () => undefined,
  run: async () => 127,
  self: ['virtctl'],
  platform: 'linux',
};

let scene: SubresourcesScene;
let folder: string;
const cleanups: (() => unknown)[] = [];

before(async () => {
  scene = await startSubresourcesScene({ after: (fn) => cleanups.push(fn) });
  folder = await mkdtemp(join(tmpdir(), 'selfsame-access-'));
});
after(async () => {
  await scene?.stop();
  for (const cleanup of cleanups) await cleanup();
  await rm(folder, { recursive: true, force: true });
});
beforeEach(() => {
  scene.node.done.length = 0;
  scene.node.isHeadless = false;
  scene.node.nextError = undefined;
  scene.programs = NO_PROGRAMS;
  scene.interrupted = () => new Promise(() => {});
});

/** Creates a guest that runs on the scene's node. */
async function createGuest(): Promise<string> {
  const name = scene.newName();
  await scene.createVm(name, { runStrategy: 'Always' }, { created: true });
  await scene.createVmi(name, RUNS);
  scene.node.run(name);
  return name;
}

/** Runs virtctl with a user at the keyboard. */
function runInteractively(...argv: string[]) {
  const [stdin, stdout] = [new PassThrough(), new Sink()];
  const ended = scene.virtctlInteractive(stdin, stdout, ...argv);
  const awaitText = async (text: string | RegExp) => {
    for (;;) {
      const match = new RegExp(text).exec(stdout.text);
      if (match !== null) return match;
      await Promise.race([once(stdout, 'grown'), ended.then(({ err }) => assert.fail(`virtctl ended: ${err}`))]);
    }
  };
  return { stdin, stdout, ended, shows: awaitText };
}

suite('a console', () => {
  test('is taken over by a later connection, and the first one ends with a message', async () => {
    const name = await createGuest();
    const first = runInteractively('console', name);
    await first.shows('login: ');
    const second = runInteractively('console', name);
    await second.shows('login: ');
    assert.deepEqual(await first.ended, {
      code: 1,
      err:
        `Successfully connected to ${name} console. Press Ctrl+] or Ctrl+5 to exit console.\n` +
        'error: You were disconnected from the console: another user connected to the console of the target VM\n',
    });
    second.stdin.write('still here\n');
    await second.shows('STILL HERE');
    second.stdin.end();
    assert.equal((await second.ended).code, 0);
  });

  test('of a node that becomes unreachable ends with an explanation', async () => {
    const name = await createGuest();
    const { shows, ended } = runInteractively('console', name);
    await shows('login: ');
    scene.node.consoles.get(name)!.destroy();
    const { code, err } = await ended;
    assert.equal(code, 1);
    assert.match(err, /error: You were disconnected from the console: the console was closed\n$/);
  });
});

suite('a display', () => {
  test('is behind a local port for one viewer, until the viewer disconnects', async () => {
    const name = await createGuest();
    const { shows, ended } = runInteractively('vnc', name, '--proxy-only');
    const [, port] = await shows(/^\{"port":(\d+)\}\n$/);
    const viewer = connect(Number(port), '127.0.0.1');
    const [greeting] = (await once(viewer, 'data')) as [Buffer];
    assert.equal(greeting.toString(), 'RFB 003.008\n');
    viewer.write('hello');
    const [answer] = (await once(viewer, 'data')) as [Buffer];
    assert.equal(answer.toString(), 'HELLO');
    viewer.destroy();
    assert.deepEqual(await ended, { code: 0, err: '' });
    const display = scene.node.displays.get(name)!;
    if (!display.destroyed) await once(display, 'close');
  });

  test('is shown by a viewer on this machine', async () => {
    const name = await createGuest();
    const calls: string[] = [];
    scene.programs = {
      ...NO_PROGRAMS,
      find: async (name) => (name === 'vncviewer' ? '/usr/bin/vncviewer' : undefined),
      async run(program, args) {
        calls.push(program);
        const [, port] = /^127\.0\.0\.1:(\d+)$/.exec(args[0] ?? '') ?? [];
        const viewer = connect(Number(port), '127.0.0.1');
        await once(viewer, 'data');
        viewer.destroy();
        return 0;
      },
    };
    const { code, err } = await scene.virtctl('vnc', name);
    assert.deepEqual({ code, err, ran: calls }, { code: 0, err: '', ran: ['/usr/bin/vncviewer'] });
  });

  test('is not opened if no viewer is installed', async () => {
    const name = await createGuest();
    assert.deepEqual(await scene.virtctl('vnc', name), {
      code: 1,
      out: '',
      err: 'error: could not find remote-viewer or vncviewer binary in $PATH; use --proxy-only to connect any other viewer\n',
    });
    assert.equal(scene.node.displays.has(name), false);
  });

  test('is shared, unless the second connection requests a session of its own', async () => {
    const name = await createGuest();
    const first = runInteractively('vnc', name, '--proxy-only');
    await first.shows('port');
    const displayOfFirst = scene.node.displays.get(name)!;
    assert.deepEqual(await scene.virtctl('vnc', name, '--proxy-only', '--preserve-session'), {
      code: 1,
      out: '',
      err: `error: Cannot open the display of VMI ${name}: Active VNC connection. Request denied.\n`,
    });
    const second = runInteractively('vnc', name, '--proxy-only');
    await second.shows('port');
    scene.node.displays.get(name)!.destroy();
    assert.equal((await second.ended).code, 1);
    assert.equal(displayOfFirst.destroyed, false, 'the first connection stays open');
    displayOfFirst.destroy();
    assert.equal((await first.ended).code, 1);
  });

  test('can be read as a screenshot', async () => {
    const name = await createGuest();
    const file = join(folder, 'screen.png');
    assert.deepEqual(await scene.virtctl('vnc', 'screenshot', name, '-f', file, '-m'), { code: 0, out: '', err: '' });
    assert.deepEqual(await readFile(file), PICTURE);
    const answer = await sendHttp1Request(scene.front.admin, {
      path: `${IN_NAMESPACE}/virtualmachineinstances/${name}/vnc/screenshot?moveCursor=false`,
    });
    assert.equal(answer.headers['content-type'], 'image/png');
    assert.deepEqual(scene.node.done, [`screenshot ${name} moved`, `screenshot ${name}`]);
  });

  const refusals: Record<string, { argv: (name: string) => string[]; err: (name: string) => string }> = {
    'a screenshot without a file': {
      argv: (name) => ['vnc', 'screenshot', name],
      err: () => 'required flag(s) "file" not set',
    },
    'a screenshot of a guest without a display': {
      argv: (name) => ['vnc', 'screenshot', name, '-f', '-'],
      err: (name) => `Cannot take a screenshot of VMI ${name}: No graphics devices are present.`,
    },
    'a display of a guest without one': {
      argv: (name) => ['vnc', name, '--proxy-only'],
      err: (name) => `Cannot open the display of VMI ${name}: No graphics devices are present.`,
    },
    'a display of an instance that does not exist': {
      argv: () => ['vnc', 'nobody', '--proxy-only'],
      err: () =>
        'Cannot open the display of VMI nobody: virtualmachineinstance.kubevirt.io "nobody" not found in namespace "default"; ...',
    },
  };
  for (const [title, { argv, err }] of Object.entries(refusals)) {
    test(`refuses ${title}`, async () => {
      const name = await createGuest();
      scene.node.isHeadless = true;
      assertRefused(await scene.virtctl(...argv(name)), err(name));
    });
  }
});

suite('a port', () => {
  test('is forwarded from a local port, for any number of connections, until Ctrl-C', async () => {
    const name = await createGuest();
    const interrupt = Promise.withResolvers<void>();
    scene.interrupted = () => interrupt.promise;
    const { shows, ended } = runInteractively('port-forward', `vm/${name}`, '0:80');
    const [, port] = await shows(/^forwarding tcp 127\.0\.0\.1:(\d+) to 80\n$/);
    const clients = [1, 2].map(() => connect(Number(port), '127.0.0.1'));
    for (const [at, client] of clients.entries()) {
      client.write(`hello ${at}`);
      const [answer] = (await once(client, 'data')) as [Buffer];
      assert.equal(answer.toString(), `HELLO ${at}`);
    }
    assert.deepEqual(scene.node.done, [`port ${name} 80/tcp`, `port ${name} 80/tcp`]);
    // The last bytes arrive before the end, in both directions.
    const last = scene.node.ports.get(name)!;
    const bye = once(clients[1]!, 'data');
    last.end('bye');
    assert.equal(String((await bye)[0]), 'BYE');
    await once(clients[1]!, 'close');
    const closed = once(clients[0]!, 'close');
    interrupt.resolve();
    assert.deepEqual(await ended, { code: 0, err: '' });
    await closed;
  });

  test('forwards datagrams, each unchanged', async () => {
    const name = await createGuest();
    const interrupt = Promise.withResolvers<void>();
    scene.interrupted = () => interrupt.promise;
    const { shows, ended } = runInteractively('port-forward', `vmi/${name}/default`, 'udp/0:53');
    const [, port] = await shows(/^forwarding udp 127\.0\.0\.1:(\d+) to 53\n$/);
    const client = createSocket('udp4');
    const received: string[] = [];
    const all = new Promise<void>((resolve) => {
      client.on('message', (datagram) => received.push(String(datagram)) === 3 && resolve());
    });
    for (const text of ['one', 'two', 'three']) client.send(text, Number(port), '127.0.0.1');
    await all;
    assert.deepEqual(received, ['ONE', 'TWO', 'THREE']);
    assert.deepEqual(scene.node.done, [`port ${name} 53/udp`]);
    client.close();
    interrupt.resolve();
    assert.equal((await ended).code, 0);
  });

  test('is connected to standard input and output for ssh', async () => {
    const name = await createGuest();
    const { stdin, shows, ended, stdout } = runInteractively(
      'port-forward',
      '--stdio=true',
      `vmi/${name}/default`,
      '22',
    );
    stdin.write('ssh-2.0');
    await shows('SSH-2.0');
    scene.node.ports.get(name)!.end('bye');
    assert.deepEqual(await ended, { code: 0, err: '' });
    assert.equal(stdout.text, 'SSH-2.0BYE');
  });

  test('that cannot be reached fails one connection, and the next one is tried', async () => {
    const name = await createGuest();
    const interrupt = Promise.withResolvers<void>();
    scene.interrupted = () => interrupt.promise;
    const { shows, ended } = runInteractively('port-forward', `vmi/${name}`, '0:80');
    const [, port] = await shows(/:(\d+) to 80/);
    scene.node.nextError = new Error('connection refused');
    const refused = connect(Number(port), '127.0.0.1');
    refused.on('error', () => {});
    await once(refused, 'close');
    scene.node.nextError = undefined;
    const client = connect(Number(port), '127.0.0.1');
    client.write('hello');
    assert.equal(String((await once(client, 'data'))[0]), 'HELLO');
    client.destroy();
    interrupt.resolve();
    const { code, err } = await ended;
    assert.equal(code, 0);
    assert.equal(
      err,
      `error: Cannot forward a connection to port 0: Cannot reach vmi/${name}/default: Internal error occurred: Cannot reach port 80/tcp of "${name}": connection refused\n`,
    );
  });

  const refusals: Record<string, { argv: string[]; err: string }> = {
    'a target of another kind': {
      argv: ['port-forward', 'pod/db', '80'],
      err: "unsupported resource type 'pod'; expected vm or vmi, as in vm/NAME or vm/NAME/NAMESPACE",
    },
    'a target without a port': {
      argv: ['port-forward', 'vm/db'],
      err: 'accepts between 2 and 65 arg(s), received 1',
    },
    'an unknown protocol': { argv: ['port-forward', 'vm/db', 'sctp/80'], err: 'unknown protocol: sctp' },
    'two ports on one standard input': {
      argv: ['port-forward', '--stdio', 'vm/db', '80', '81'],
      err: 'only one port supported when forwarding to stdout',
    },
    'a VM that does not exist': {
      argv: ['port-forward', '--stdio', 'vm/nobody', '80'],
      err: 'Cannot reach vm/nobody/default: virtualmachine.kubevirt.io "nobody" not found in namespace "default"; ...',
    },
    'ssh if ssh is not installed': {
      argv: ['ssh', 'jdoe@vm/db'],
      err: 'Cannot find ssh in PATH: install it, or add it to PATH',
    },
    'ssh without a target': { argv: ['ssh', 'jdoe@'], err: "expected target after '@'" },
    'the built-in ssh of old virtctls': {
      argv: ['ssh', '--local-ssh=false', 'vm/db'],
      err: '--local-ssh must be true: the local ssh client is always used',
    },
    'a copy between guests': {
      argv: ['scp', 'vm/a:x', 'vm/b:x'],
      err: 'copying from a remote location to another remote location is not supported: "vm/a:x" to "vm/b:x"',
    },
  };
  for (const [title, { argv, err }] of Object.entries(refusals)) {
    test(`refuses ${title}`, async () => assertRefused(await scene.virtctl(...argv), err));
  }

  const lines: Record<string, { argv: string[]; want: string[] }> = {
    'ssh to a VM of another namespace': {
      argv: ['ssh', 'jdoe@vm/db/shop', '-i', '/k', '-p', '2222', '-c', 'uname -r'],
      want: [
        ...[
          '/usr/bin/ssh',
          '-o',
          'ProxyCommand=virtctl --kubeconfig=/kubeconfig port-forward --stdio=true vm/db/shop 2222',
        ],
        ...['-i', '/k', '--', 'jdoe@vm.db.shop', 'uname -r'],
      ],
    },
    'ssh with the target syntax of KubeVirt 1.4': {
      argv: ['ssh', '--local-ssh', '-l', 'root', '-t', '-o StrictHostKeyChecking=no', 'vmi/db.shop'],
      want: [
        ...[
          '/usr/bin/ssh',
          '-o',
          'ProxyCommand=virtctl --kubeconfig=/kubeconfig port-forward --stdio=true vmi/db/shop 22',
        ],
        ...['-o', 'StrictHostKeyChecking=no', '--', 'root@vmi.db.shop'],
      ],
    },
    'ssh as a user whose name looks like an option': {
      argv: ['ssh', '--', '-oProxyCommand=evil@vm/db'],
      want: [
        ...[
          '/usr/bin/ssh',
          '-o',
          'ProxyCommand=virtctl --kubeconfig=/kubeconfig port-forward --stdio=true vm/db/default 22',
        ],
        ...['--', '-oProxyCommand=evil@vm.db.default'],
      ],
    },
    'scp into a guest': {
      argv: ['scp', '-r', '--preserve', 'dir', 'jdoe@vmi/db:/tmp', '--known-hosts', '/h'],
      want: [
        ...[
          '/usr/bin/scp',
          '-o',
          'ProxyCommand=virtctl --kubeconfig=/kubeconfig port-forward --stdio=true vmi/db/default 22',
        ],
        ...['-o', 'UserKnownHostsFile=/h', '-r', '-p', '--', 'dir', 'jdoe@vmi.db.default:/tmp'],
      ],
    },
    'scp out of a guest': {
      argv: ['scp', 'vmi/db:/etc/motd', '.'],
      want: [
        ...[
          '/usr/bin/scp',
          '-o',
          'ProxyCommand=virtctl --kubeconfig=/kubeconfig port-forward --stdio=true vmi/db/default 22',
        ],
        ...['--', 'vmi.db.default:/etc/motd', '.'],
      ],
    },
  };
  for (const [title, { argv, want }] of Object.entries(lines)) {
    test(title, async () => {
      const ran: string[][] = [];
      scene.programs = {
        ...NO_PROGRAMS,
        find: async (program) => `/usr/bin/${program}`,
        async run(program, args) {
          ran.push([program, ...args]);
          return 7;
        },
      };
      assert.equal((await scene.virtctl(...argv)).code, 7, 'the exit code is that of the program');
      assert.deepEqual(ran, [want]);
    });
  }
});
