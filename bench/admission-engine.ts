/**
 * The engine as `selfsame up` composes it, with an additional webhook in its process. Such services are registered in
 * code, and the real program has none for this benchmark. Runs on a data directory that the real program has created.
 *
 *   node bench/admission-engine.ts DATA-DIR PORT
 */
import { join } from 'node:path';
import { createAuthenticator } from '#engine/auth/authenticate.ts';
import { ensurePki } from '#engine/auth/certificates.ts';
import { ensureSigningKey } from '#engine/auth/service-accounts/signing-key.ts';
import { startControllers } from '#engine/controllers/start.ts';
import { createCore } from '#engine/core.ts';
import { HttpsListener } from '#engine/http/server.ts';
import { LocalServices } from '#engine/remote/local-services.ts';
import { openSqliteStore } from '#engine/store/open-store.ts';
import { systemClock as clock } from '#lib/clock.ts';
import { createLog } from '#lib/log.ts';
import { reviewDelete, LOCAL_SERVICE } from './delete-guards.ts';

const HOST = '127.0.0.1';
const [dataDir, port] = process.argv.slice(2);
if (dataDir === undefined || port === undefined) throw new Error('Usage: admission-engine.ts DATA-DIR PORT');

const log = createLog('warn');
const services = new LocalServices();
services.register(LOCAL_SERVICE.namespace, LOCAL_SERVICE.name, {
  review: (_path, review) => Promise.resolve(reviewDelete(review)),
});
const pkiDir = join(dataDir, 'pki');
const pki = await ensurePki({ dir: pkiDir, hosts: ['localhost', HOST], now: () => clock.now(), log });
const store = await openSqliteStore(join(dataDir, 'store.db'));
const signingKey = await ensureSigningKey(pkiDir);
const core = createCore({ store, clock, log, signingKey, services, serverAddress: () => `${HOST}:${port}` });
const listener = await HttpsListener.start({
  host: HOST,
  port: Number(port),
  cert: pki.server.certPem,
  key: pki.server.keyPem,
  ca: pki.caPem,
  handler: core.handler,
  authenticate: createAuthenticator({ tokens: core.tokens }),
  log,
});
const controllers = await startControllers({ core, caPem: pki.caPem, clock, log });
core.markStarted();
process.once('SIGTERM', () => {
  void (async () => {
    await controllers.stop();
    await listener.stop();
    core.stop();
    await store.close();
    process.exit(0);
  })();
});
// An interrupt from the keyboard reaches all processes of the group; the benchmark decides when each ends.
process.on('SIGINT', () => {});
process.stdout.write('ready\n');
