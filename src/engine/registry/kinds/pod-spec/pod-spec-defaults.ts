/** Defaults of a pod spec, in pods and templates. Constant defaults are in the schema. */
import type { Container } from '#engine/registry/kinds/pod-spec/container.ts';
import type { EnginePodSpec } from '#engine/registry/kinds/pod-spec/pod-spec.ts';
import { canonicalAmounts, canonicalResources, quantityText } from '#engine/registry/kinds/shared/quantities.ts';
import { records } from '#engine/registry/kinds/shared/reading.ts';
import { isRecord } from '#kube/meta.ts';

export function defaultPodSpec(spec: EnginePodSpec | undefined): void {
  if (!isRecord(spec)) return;
  for (const container of containersOf(spec)) defaultContainer(container);
  for (const volume of records(spec.volumes)) {
    // A volume without a source is an emptyDir.
    if (Object.keys(volume).every((key) => key === 'name')) volume.emptyDir = {};
    const { emptyDir, ephemeral } = volume;
    if (isRecord(emptyDir) && emptyDir.sizeLimit !== undefined) emptyDir.sizeLimit = quantityText(emptyDir.sizeLimit);
    canonicalResources(ephemeral?.volumeClaimTemplate?.spec?.resources);
    if (isRecord(volume.image)) volume.image.pullPolicy ??= pullPolicyOf(volume.image.reference);
  }
  canonicalAmounts(spec.overhead);
  // Keeps the deprecated field equal to the current one, which takes precedence.
  const account = spec.serviceAccountName || spec.serviceAccount;
  if (account) {
    spec.serviceAccountName = account;
    spec.serviceAccount = account;
  }
}

/** Returns the containers of all types. */
function containersOf(spec: EnginePodSpec): Container[] {
  return [...records(spec.initContainers), ...records(spec.containers), ...records(spec.ephemeralContainers)];
}

function defaultContainer(container: Container): void {
  container.imagePullPolicy ??= pullPolicyOf(container.image);
  canonicalResources(container.resources);
}

/** An image whose tag may move is always pulled. */
function pullPolicyOf(image: unknown): 'Always' | 'IfNotPresent' {
  return typeof image === 'string' && image !== '' && tagOf(image) === 'latest' ? 'Always' : 'IfNotPresent';
}

/** Returns the tag of `registry:5000/name:tag@digest`; `latest` if it has neither tag nor digest. */
function tagOf(image: string): string {
  const digestAt = image.indexOf('@');
  const name = digestAt < 0 ? image : image.slice(0, digestAt);
  const colon = name.indexOf(':', name.lastIndexOf('/') + 1);
  if (colon >= 0) return name.slice(colon + 1);
  return digestAt < 0 ? 'latest' : '';
}
