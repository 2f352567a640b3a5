/** The API with everything that the operator installs, and our webhook, which looks up the objects of this API. */
import { reviewAdmission } from '#admission/review-admission.ts';
import type { AdmissionLookup } from '#admission/validate.ts';
import { PROTECTED_SELECTOR } from '#api/protection/delete-protection.ts';
import { macAddressesOf } from '#api/identity/mac-address-index.ts';
import { configurationOf } from '#api/kubevirt/configuration.ts';
import { KUBEVIRTS } from '#api/kubevirt/kind.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { isRestoreFinished, VIRTUAL_MACHINE_RESTORES } from '#api/virtual-machine-restore/kind.ts';
import type { Client } from '#client/client.ts';
import { LocalServices } from '#engine/remote/local-services.ts';
import { invariant } from '#lib/invariant.ts';
import { systemClock, timestamp } from '#lib/clock.ts';
import { newUid } from '#lib/ids.ts';
import { startOperator, type OperatorPlane } from '#operator/testing/operator-plane.ts';
import { createEvacuationMarker, createMigrationLookup } from '#plane/components/webhook.ts';
import { startTestApi, type TestApi } from '#test/support/test-api.ts';

export interface AdmissionScene {
  readonly api: TestApi;
  readonly plane: OperatorPlane;
  /** Makes the webhook unavailable until the returned function is called. */
  loseWebhook(): () => void;
  stop(): Promise<void>;
}

export async function startAdmissionScene(...namespaces: readonly string[]): Promise<AdmissionScene> {
  const services = new LocalServices();
  const api = await startTestApi({ services });
  const running: { plane?: OperatorPlane } = {};
  const serveWebhook = () =>
    services.register('selfsame-system', 'selfsame-webhook', {
      review: (path, review) =>
        reviewAdmission(path, review, {
          lookup: lookupOf(running.plane),
          markForEvacuation: (vmi, node) => createEvacuationMarker(webhookClient(running.plane))(vmi, node),
          newUuid: newUid,
          now: () => timestamp(systemClock.now()),
        }),
    });
  let unregister = serveWebhook();
  const plane = await startOperator(api);
  running.plane = plane;
  await Promise.all(
    [KUBEVIRTS, VIRTUAL_MACHINES, VIRTUAL_MACHINE_RESTORES].map((type) => plane.informer(type).waitForSync()),
  );
  await plane.settle();
  for (const name of namespaces) {
    await api.ok('POST', '/api/v1/namespaces', { body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name } } });
  }
  return {
    api,
    plane,
    loseWebhook() {
      unregister();
      return () => (unregister = serveWebhook());
    },
    async stop() {
      await plane.stop();
      await api.stop();
    },
  };
}

/** Before there is a client, only objects of the operator are reviewed, and those need no live lookups. */
function webhookClient(plane: OperatorPlane | undefined): Client {
  invariant(plane !== undefined, 'a live look comes after the start');
  return plane.client('selfsame-webhook');
}

/** Lookups that list all objects, because a scenario has few of them. */
function lookupOf(plane: OperatorPlane | undefined): AdmissionLookup {
  const client: Pick<Client, 'get' | 'list'> = {
    get: (...args) => webhookClient(plane).get(...args),
    list: (...args) => webhookClient(plane).list(...args),
  };
  return {
    ...createMigrationLookup(client),
    configuration: () => configurationOf(plane?.informer(KUBEVIRTS).get('selfsame-system/kubevirt')),
    vmsWithUuid(uuid) {
      const vms = plane?.informer(VIRTUAL_MACHINES).list() ?? [];
      const hasUuid = (other: string | undefined) => other?.toLowerCase() === uuid.toLowerCase();
      return vms
        .filter(({ spec }) => hasUuid(spec.template.spec?.domain?.firmware?.uuid))
        .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
        .map(({ metadata: { namespace = '', name } }) => ({ namespace, name }));
    },
    vmsWithMac: (mac) =>
      (plane?.informer(VIRTUAL_MACHINES).list() ?? [])
        .filter((vm) => macAddressesOf(vm).includes(mac))
        .map(({ metadata: { namespace = '', name } }) => ({ namespace, name })),
    restoresOf: (namespace, vmName) =>
      Promise.resolve(
        (plane?.informer(VIRTUAL_MACHINE_RESTORES).list() ?? [])
          .filter(({ metadata, spec }) => metadata.namespace === namespace && spec.target.name === vmName)
          .filter((restore) => !isRestoreFinished(restore))
          .map(({ metadata: { name } }) => ({ name })),
      ),
    guestNetwork: () => undefined,
    networkAddress: () => undefined,
    nodes: () => [],
    vmsOfClaim: () => [],
    claimsOfVm: () => [],
    async protectedVms(query) {
      const options = { ...query, labelSelector: PROTECTED_SELECTOR };
      return (await plane?.client('selfsame-webhook').list(VIRTUAL_MACHINES, options))?.items ?? [];
    },
  };
}
