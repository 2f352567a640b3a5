/** A volume of a pod: a name and exactly one source. */
import { plainVolumeSources } from '#engine/registry/kinds/shared/plain-volume-source.ts';
import { podVolumeSources } from '#engine/registry/kinds/shared/pod-volume-source.ts';
import { projectedVolumeSources } from '#engine/registry/kinds/shared/projected-volume.ts';
import { type Infer, obj, str } from '#kube/schema-dsl.ts';

const sources = { ...plainVolumeSources, ...podVolumeSources, ...projectedVolumeSources };

export const VOLUME_SOURCES: readonly string[] = Object.keys(sources).sort();

export const podVolumeSchema = obj({ ...sources, name: str() }, { required: ['name'] });

export type EnginePodVolume = Infer<typeof podVolumeSchema>;
