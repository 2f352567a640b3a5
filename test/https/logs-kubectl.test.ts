/** `kubectl logs` against the whole engine and the HTTPS side of a kubelet. */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';
import type { ExtensionServer } from '#test/support/extension-server.ts';
import { findNewKubectl, findOldKubectl } from '#test/support/kubectl.ts';
import { aNode, aPod, startKubelet } from '#test/support/kubelet-server.ts';
import { startPlane, type Plane } from '#test/support/plane.ts';

const run = promisify(execFile);
const MAIN = '/containerLogs/default/web/main';

for (const [age, found] of Object.entries({ old: findOldKubectl(), new: findNewKubectl() })) {
  const skip = 'missing' in found ? found.missing : false;
  const kubectl = 'missing' in found ? '' : found.path;

  suite(`kubectl logs, ${age}`, { skip }, () => {
    let plane: Plane;
    let kubelet: ExtensionServer;

    const env = () => ({ ...process.env, KUBECONFIG: plane.kubeconfigPath, HOME: plane.dir });
    const logs = async (...args: string[]) => (await run(kubectl, ['logs', ...args], { env: env() })).stdout;
    const refusal = (...args: string[]) =>
      logs(...args).then(
        () => assert.fail('kubectl logs was not refused'),
        (error: { stderr: string }) => error.stderr,
      );

    before(async () => {
      plane = await startPlane();
      kubelet = await startKubelet(join(plane.dir, 'data/pki'));
      const items = [
        aNode('node-1', kubelet.port),
        aPod('web', { nodeName: 'node-1', containers: ['main', 'side'] }),
        aPod('waiting', { nodeName: 'node-1' }),
      ];
      const apply = spawn(kubectl, ['create', '-f', '-'], { env: env(), stdio: ['pipe', 'ignore', 'inherit'] });
      apply.stdin.end(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
      const [code] = (await once(apply, 'close')) as [number];
      assert.equal(code, 0);
    });
    after(async () => {
      await plane.stop();
      await kubelet.stop();
    });

    test('prints the log of the container, with the given options', async () => {
      kubelet.on(MAIN, (_, response) => void response.end('hello\n'));
      assert.equal(await logs('web', '-c', 'main'), 'hello\n');
      kubelet.requests.length = 0;
      await logs('web', '-c', 'main', '--tail', '3', '--previous', '--timestamps', '--since', '1m');
      const query = '?previous=true&sinceSeconds=60&tailLines=3&timestamps=true';
      assert.equal(kubelet.requests[0]?.url, MAIN + query);
    });

    test('follows until the end', async () => {
      let response: ServerResponse | undefined;
      const opened = new Promise<void>((resolve) => {
        kubelet.on(MAIN, (_, serverResponse) => {
          response = serverResponse;
          resolve();
        });
      });
      const child = spawn(kubectl, ['logs', '-f', 'web', '-c', 'main'], { env: env() });
      await opened;
      for (const line of ['one\n', 'two\n']) {
        response!.write(line);
        assert.equal(String(((await once(child.stdout, 'data')) as [Buffer])[0]), line);
      }
      response!.end();
      const [code] = (await once(child, 'close')) as [number];
      assert.equal(code, 0);
    });

    test('prints why there is no log', async () => {
      kubelet.on('/containerLogs/default/waiting/main', (_, response) => {
        response.writeHead(400).end('container "main" in pod "waiting" is waiting to start: ContainerCreating');
      });
      assert.equal(
        await refusal('waiting'),
        'Error from server (BadRequest): container "main" in pod "waiting" is waiting to start: ContainerCreating\n',
      );
      assert.match(await refusal('web', '-c', 'none'), /container none is not valid for pod web/);
      assert.match(await refusal('absent'), /pods "absent" not found/);
    });
  });
}
