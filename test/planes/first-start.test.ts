/**
 * The first start on an empty store: the first VM that can be created has a random uuid, and /readyz is not ok before.
 * A VM that was created past the webhook nevertheless is not treated as an old VM.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { request } from 'node:https';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { legacyUuid } from '#api/identity/legacy-uuid.ts';
import { UUID_ADMISSION_ANNOTATION } from '#api/identity/uuid-admission.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { createHttpTransport } from '#client/http.ts';
import { loadKubeconfig } from '#client/kubeconfig.ts';
import { createClient } from '#client/rest-client.ts';
import { LocalServices } from '#engine/remote/local-services.ts';
import { LogStore } from '#engine/store/log-store.ts';
import { MemoryJournal } from '#engine/store/testing/memory-journal.ts';
import { systemClock } from '#lib/clock.ts';
import { silentLog } from '#lib/log.ts';
import { startPlaneComponents, type PlaneComponents } from '#plane/embedded/plane-components.ts';
import { startPlane } from '#plane/embedded/plane.ts';
import { storePastAdmission } from '#test/support/old-objects.ts';
import { startTestApi, type Loose, type TestApi } from '#test/support/test-api.ts';
import { aVm, startVmPlane } from '#test/support/vm-plane.ts';

const V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const VMS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines';
const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const MUTATING = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations';
const HALTED = { runStrategy: 'Halted' };
const uuidOf = (vm: Loose): string | undefined => vm.spec.template.spec.domain.firmware?.uuid;
const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

interface Started {
  readonly api: TestApi;
  readonly starting: Promise<PlaneComponents>;
  stop(): Promise<void>;
}

/** Starts a server on the store without waiting until everything is in place. */
async function start(t: TestContext, journal = new MemoryJournal()): Promise<Started> {
  const services = new LocalServices();
  const api = await startTestApi({ store: await LogStore.open(journal), services });
  const nodes = () => ({}) as Loose;
  const { handler, metrics } = api.core;
  const starting = startPlaneComponents({
    handler,
    services,
    nodes,
    hosts: nodes,
    metrics,
    clock: systemClock,
    log: silentLog,
  });
  let isRunning = true;
  const stop = async () => {
    if (!isRunning) return;
    isRunning = false;
    await (await starting).stop();
    await api.stop();
  };
  t.after(stop);
  return { api, starting, stop };
}

/** Returns the first VM that the server accepts, as it answers; before that, only refusals are allowed. */
async function createFirstVm({ api }: Started): Promise<Loose> {
  for (;;) {
    const { status, body } = await api.call('POST', VMS, { body: aVm('web', HALTED) });
    if (status === 201) return body;
    assert.ok(status === 404 || /failed calling webhook/.test(body.message), JSON.stringify(body));
    await nextTurn();
  }
}

test('the first VM that a new server accepts has a random uuid, different on each server', async (t) => {
  const made = await Promise.all([start(t), start(t)].map(async (started) => createFirstVm(await started)));
  for (const vm of made) {
    assert.match(uuidOf(vm) ?? 'none', V4);
    assert.ok(vm.spec.template.spec.domain.firmware.serial);
  }
  assert.notEqual(...(made.map(uuidOf) as [string, string]));
});

test("the stamp is written once, with the server's clock, and stays when its configuration is deleted", async (t) => {
  const journal = new MemoryJournal();
  const stampOf = async ({ api }: Started): Promise<string> =>
    (await api.ok('GET', `${CRDS}/virtualmachines.kubevirt.io`)).metadata.annotations[UUID_ADMISSION_ANNOTATION];
  const first = await start(t, journal);
  await first.starting;
  const { creationTimestamp } = (await first.api.ok('GET', `${MUTATING}/selfsame`)).metadata;
  assert.equal(await stampOf(first), creationTimestamp);
  await (await first.starting).stop();
  await first.api.ok('PATCH', `${CRDS}/virtualmachines.kubevirt.io`, {
    body: { metadata: { annotations: { [UUID_ADMISSION_ANNOTATION]: '2020-02-02T02:02:02Z' } } },
  });
  await first.api.ok('DELETE', `${MUTATING}/selfsame`);
  await first.stop();
  const restarted = await start(t, journal);
  await restarted.starting;
  assert.equal(await (await restarted.starting).installed, true);
  await restarted.api.ok('GET', `${MUTATING}/selfsame`);
  assert.equal(await stampOf(restarted), '2020-02-02T02:02:02Z');
});

test('a VM that no webhook has seen gets a random uuid if it is younger than the stamp, else the legacy uuid', async (t) => {
  const plane = await startVmPlane(t, { nodes: 1 });
  const now = new Date(plane.clock.now()).toISOString().replace(/\.\d+Z$/, 'Z');
  await storePastAdmission(plane, { ...aVm('unseen', HALTED), metadata: { name: 'unseen', creationTimestamp: now } });
  await storePastAdmission(plane, aVm('old', HALTED));
  await plane.settle();
  assert.match(uuidOf(await plane.get('VirtualMachine', 'unseen')) ?? 'none', V4);
  assert.match(
    (await plane.eventsOf('unseen')).join(),
    /FirmwareUUIDPersisted .* which is new: no webhook has set one/,
  );
  assert.equal(uuidOf(await plane.get('VirtualMachine', 'old')), legacyUuid('old'));
});

test('/readyz is not ok before a VM can be created with a uuid', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'selfsame-first-start-'));
  const port = await findFreePort();
  const starting = startPlane({
    ...{ dataDir: dir, host: '127.0.0.1', port, clock: systemClock, log: silentLog },
    nodes: 0,
    program: { file: 'unused', args: [], nodeFlags: [] },
  });
  t.after(async () => {
    await (await starting).stop();
    await rm(dir, { recursive: true });
  });
  const responses = new Set<string>();
  for (let ready = false; !ready;) {
    const { status, text } = await requestReadyz(port);
    ready = status === 200;
    if (status === 500) responses.add(text.replace(/^\[\+\].*\n/gm, ''));
    await nextTurn();
  }
  const readFile = (path: string) => readFileSync(path, 'utf8');
  const access = loadKubeconfig(readFile(join(dir, 'kubeconfig')), { readFile });
  const transport = createHttpTransport(access, { userAgent: 'gitops', clock: systemClock });
  t.after(() => transport.close());
  const vm = await createClient(transport).create(VIRTUAL_MACHINES, {
    ...aVm('web', HALTED),
    metadata: { name: 'web', namespace: 'default' },
  });
  assert.match(uuidOf(vm) ?? 'none', V4);
  assert.ok(
    responses.has('[-]selfsame failed: admission of our kinds is not in place yet\nreadyz check failed\n'),
    [...responses].join(),
  );
});

async function findFreePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Requests /readyz; returns status 0 while nothing listens. */
function requestReadyz(port: number): Promise<{ status: number; text: string }> {
  return new Promise((resolve) => {
    const sent = request(
      { host: '127.0.0.1', port, path: '/readyz?verbose', rejectUnauthorized: false },
      (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
      },
    );
    sent.on('error', () => resolve({ status: 0, text: '' }));
    sent.end();
  });
}
