/** The ways into a guest: console, display and ports, as virtctl and as other clients of KubeVirt ask for them. */
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
import { PICTURE, Sink, startSubresourcesScene, type Scene } from '#test/scenarios/subresources-scene.ts';
import { http1Request } from '#test/support/raw-https.ts';

const RUNS = { phase: 'Running' };
const IN_NAMESPACE = '/apis/subresources.kubevirt.io/v1/namespaces/default';
const NO_PROGRAMS: Programs = {
  find: async () => undefined,
  run: async () => 127,
  self: ['virtctl'],
  platform: 'linux',
};

let scene: Scene;
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

/** A guest that runs on our node. */
async function aGuest(): Promise<string> {
  const name = scene.newName();
  await scene.aVm(name, { runStrategy: 'Always' }, { created: true });
  await scene.aVmi(name, RUNS);
  scene.node.run(name);
  return name;
}

/** One call of virtctl with somebody at the keyboard. */
function calling(...argv: string[]) {
  const [stdin, stdout] = [new PassThrough(), new Sink()];
  const ended = scene.virtctlInteractive(stdin, stdout, ...argv);
  const shows = async (text: string | RegExp) => {
    for (;;) {
      const match = new RegExp(text).exec(stdout.text);
      if (match !== null) return match;
      await Promise.race([once(stdout, 'grown'), ended.then(({ err }) => assert.fail(`it ended: ${err}`))]);
    }
  };
  return { stdin, stdout, ended, shows };
}

suite('a console', () => {
  test('is taken by who comes later, and the first one is told', async () => {
    const name = await aGuest();
    const first = calling('console', name);
    await first.shows('login: ');
    const second = calling('console', name);
    await second.shows('login: ');
    assert.deepEqual(await first.ended, {
      code: 1,
      err:
        `Successfully connected to ${name} console. Press Ctrl+] or Ctrl+5 to exit console.\n` +
        'You were disconnected from the console: another user connected to the console of the target VM\n',
    });
    second.stdin.write('still here\n');
    await second.shows('STILL HERE');
    second.stdin.end();
    assert.equal((await second.ended).code, 0);
  });

  test('of a node that goes away tells what that may mean', async () => {
    const name = await aGuest();
    const { shows, ended } = calling('console', name);
    await shows('login: ');
    scene.node.consoles.get(name)!.destroy();
    const { code, err } = await ended;
    assert.equal(code, 1);
    assert.match(err, /You were disconnected from the console: the console was closed\n$/);
  });
});

suite('a display', () => {
  test('is behind a local port for one viewer, until it leaves', async () => {
    const name = await aGuest();
    const { shows, ended } = calling('vnc', name, '--proxy-only');
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

  test('is shown by a viewer of this machine', async () => {
    const name = await aGuest();
    const ran: string[] = [];
    scene.programs = {
      ...NO_PROGRAMS,
      find: async (one) => (one === 'vncviewer' ? '/usr/bin/vncviewer' : undefined),
      async run(program, args) {
        ran.push(program);
        const [, port] = /^127\.0\.0\.1:(\d+)$/.exec(args[0] ?? '') ?? [];
        const viewer = connect(Number(port), '127.0.0.1');
        await once(viewer, 'data');
        viewer.destroy();
        return 0;
      },
    };
    const { code, err } = await scene.virtctl('vnc', name);
    assert.deepEqual({ code, err, ran }, { code: 0, err: '', ran: ['/usr/bin/vncviewer'] });
  });

  test('is not opened where no viewer is there to show it', async () => {
    const name = await aGuest();
    assert.deepEqual(await scene.virtctl('vnc', name), {
      code: 1,
      out: '',
      err: 'could not find remote-viewer or vncviewer binary in $PATH; use --proxy-only to connect any other viewer\n',
    });
    assert.equal(scene.node.displays.has(name), false);
  });

  test('is preserved for who has it, where the second one asks for that', async () => {
    const name = await aGuest();
    const first = calling('vnc', name, '--proxy-only');
    await first.shows('port');
    assert.deepEqual(await scene.virtctl('vnc', name, '--proxy-only', '--preserve-session'), {
      code: 1,
      out: '',
      err: `can't access VMI ${name}: Active VNC connection. Request denied.\n`,
    });
    const second = calling('vnc', name, '--proxy-only');
    await second.shows('port');
    assert.deepEqual(await first.ended, {
      code: 1,
      err: 'error encountered: another user connected to the display of the target VM\n',
    });
    scene.node.displays.get(name)!.destroy();
    assert.equal((await second.ended).code, 1);
  });

  test('can be had as a picture', async () => {
    const name = await aGuest();
    const file = join(folder, 'screen.png');
    assert.deepEqual(await scene.virtctl('vnc', 'screenshot', name, '-f', file, '-m'), { code: 0, out: '', err: '' });
    assert.deepEqual(await readFile(file), PICTURE);
    const answer = await http1Request(scene.front.admin, {
      path: `${IN_NAMESPACE}/virtualmachineinstances/${name}/vnc/screenshot?moveCursor=false`,
    });
    assert.equal(answer.headers['content-type'], 'image/png');
    assert.deepEqual(scene.node.done, [`screenshot ${name} moved`, `screenshot ${name}`]);
  });

  const refusals: Record<string, { argv: (name: string) => string[]; err: (name: string) => string }> = {
    'a picture that goes nowhere': {
      argv: (name) => ['vnc', 'screenshot', name],
      err: () => 'required flag(s) "file" not set\n',
    },
    'a picture of a guest that runs without a display': {
      argv: (name) => ['vnc', 'screenshot', name, '-f', '-'],
      err: (name) => `Can't access VMI ${name}: No graphics devices are present.\n`,
    },
    'a display of such a one': {
      argv: (name) => ['vnc', name, '--proxy-only'],
      err: (name) => `can't access VMI ${name}: No graphics devices are present.\n`,
    },
    'a display of nobody': {
      argv: () => ['vnc', 'nobody', '--proxy-only'],
      err: () => `can't access VMI nobody: virtualmachineinstance.kubevirt.io "nobody" not found\n`,
    },
  };
  for (const [title, { argv, err }] of Object.entries(refusals)) {
    test(`refuses ${title}`, async () => {
      const name = await aGuest();
      scene.node.isHeadless = true;
      assert.deepEqual(await scene.virtctl(...argv(name)), { code: 1, out: '', err: err(name) });
    });
  }
});

suite('a port', () => {
  test('of a guest is behind a local one, for any number of connections, until Ctrl-C', async () => {
    const name = await aGuest();
    const interrupt = Promise.withResolvers<void>();
    scene.interrupted = () => interrupt.promise;
    const { shows, ended } = calling('port-forward', `vm/${name}`, '0:80');
    const [, port] = await shows(/^forwarding tcp 127\.0\.0\.1:(\d+) to 80\n$/);
    const clients = [1, 2].map(() => connect(Number(port), '127.0.0.1'));
    for (const [at, client] of clients.entries()) {
      client.write(`hello ${at}`);
      const [answer] = (await once(client, 'data')) as [Buffer];
      assert.equal(answer.toString(), `HELLO ${at}`);
    }
    assert.deepEqual(scene.node.done, [`port ${name} 80/tcp`, `port ${name} 80/tcp`]);
    // What was said last arrives before the end, on both sides.
    const last = scene.node.ports.get(name)!;
    const bye = once(clients[1]!, 'data');
    last.end('bye');
    assert.equal(String((await bye)[0]), 'BYE');
    await once(clients[1]!, 'close');
    const gone = once(clients[0]!, 'close');
    interrupt.resolve();
    assert.deepEqual(await ended, { code: 0, err: '' });
    await gone;
  });

  test('takes datagrams, each as it is', async () => {
    const name = await aGuest();
    const interrupt = Promise.withResolvers<void>();
    scene.interrupted = () => interrupt.promise;
    const { shows, ended } = calling('port-forward', `vmi/${name}/default`, 'udp/0:53');
    const [, port] = await shows(/^forwarding udp 127\.0\.0\.1:(\d+) to 53\n$/);
    const client = createSocket('udp4');
    const heard: string[] = [];
    const all = new Promise<void>((resolve) => {
      client.on('message', (datagram) => heard.push(String(datagram)) === 3 && resolve());
    });
    for (const text of ['one', 'two', 'three']) client.send(text, Number(port), '127.0.0.1');
    await all;
    assert.deepEqual(heard, ['ONE', 'TWO', 'THREE']);
    assert.deepEqual(scene.node.done, [`port ${name} 53/udp`]);
    client.close();
    interrupt.resolve();
    assert.equal((await ended).code, 0);
  });

  test('is on standard input and output for ssh', async () => {
    const name = await aGuest();
    const { stdin, shows, ended, stdout } = calling('port-forward', '--stdio=true', `vmi/${name}/default`, '22');
    stdin.write('ssh-2.0');
    await shows('SSH-2.0');
    scene.node.ports.get(name)!.end('bye');
    assert.deepEqual(await ended, { code: 0, err: '' });
    assert.equal(stdout.text, 'SSH-2.0BYE');
  });

  test('that cannot be reached fails one connection, and the next is tried', async () => {
    const name = await aGuest();
    const interrupt = Promise.withResolvers<void>();
    scene.interrupted = () => interrupt.promise;
    const { shows, ended } = calling('port-forward', `vmi/${name}`, '0:80');
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
      `error handling connection for 0: can't access vmi/${name}/default: Internal error occurred: Cannot reach port 80/tcp of "${name}": connection refused\n`,
    );
  });

  const refusals: Record<string, { argv: string[]; err: string }> = {
    'a target of no kind': {
      argv: ['port-forward', 'db', '80'],
      err: "target must contain type and name separated by '/'\n",
    },
    'no port': { argv: ['port-forward', 'vm/db'], err: 'accepts between 2 and 65 arg(s), received 1\n' },
    'a protocol that nobody speaks': { argv: ['port-forward', 'vm/db', 'sctp/80'], err: 'unknown protocol: sctp\n' },
    'two ports on one standard input': {
      argv: ['port-forward', '--stdio', 'vm/db', '80', '81'],
      err: 'only one port supported when forwarding to stdout\n',
    },
    'a VM that is not there': {
      argv: ['port-forward', '--stdio', 'vm/nobody', '80'],
      err: 'virtualmachine.kubevirt.io "nobody" not found\n',
    },
    'ssh where there is no ssh': {
      argv: ['ssh', 'jdoe@vm/db'],
      err: 'could not find ssh in $PATH: install it, or add it to PATH\n',
    },
    'ssh to nowhere': { argv: ['ssh', 'jdoe@'], err: "expected target after '@'\n" },
    'the ssh of old virtctls': {
      argv: ['ssh', '--local-ssh=false', 'vm/db'],
      err: '--local-ssh must be true: the local ssh client is always used\n',
    },
    'a copy between guests': {
      argv: ['scp', 'vm/a:x', 'vm/b:x'],
      err: 'copying from a remote location to another remote location is not supported: "vm/a:x" to "vm/b:x"\n',
    },
  };
  for (const [title, { argv, err }] of Object.entries(refusals)) {
    test(`refuses ${title}`, async () => assert.deepEqual(await scene.virtctl(...argv), { code: 1, out: '', err }));
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
    'ssh as KubeVirt 1.4 wrote it': {
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
    'ssh as somebody whose name looks like an option': {
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
        find: async (one) => `/usr/bin/${one}`,
        async run(program, args) {
          ran.push([program, ...args]);
          return 7;
        },
      };
      assert.equal((await scene.virtctl(...argv)).code, 7, 'its exit code is ours');
      assert.deepEqual(ran, [want]);
    });
  }
});
