/** The envelope, metadata and the types that every group shares. Notation: message-table.ts. */
export const META_TABLE = `
Unknown
  1 typeMeta? TypeMeta; 2 raw? bytes; 3 contentEncoding? string; 4 contentType? string
TypeMeta
  1 apiVersion? string; 2 kind? string
ObjectMeta
  1 name? string; 2 generateName? string; 3 namespace? string; 4 selfLink? string; 5 uid? string;
  6 resourceVersion? string; 7 generation? int64; 8 creationTimestamp? Time; 9 deletionTimestamp? *Time;
  10 deletionGracePeriodSeconds? *int64; 11 labels? string{}; 12 annotations? string{};
  13 ownerReferences? OwnerReference[]; 14 finalizers? string[]; 17 managedFields? ManagedFieldsEntry[]
Time
  1 seconds int64; 2 nanos int32
OwnerReference
  5 apiVersion string; 1 kind string; 3 name string; 4 uid string; 6 controller? *bool; 7 blockOwnerDeletion? *bool
ManagedFieldsEntry
  1 manager? string; 2 operation? string; 3 apiVersion? string; 4 time? *Time; 6 fieldsType? string;
  7 fieldsV1? *FieldsV1; 8 subresource? string
FieldsV1
  1 Raw bytes
Quantity
  1 string string
LabelSelector
  1 matchLabels? string{}; 2 matchExpressions? LabelSelectorRequirement[]
LabelSelectorRequirement
  1 key string; 2 operator string; 3 values? string[]
IntOrString
  1 type int64; 2 intVal int32; 3 strVal string
MicroTime
  1 seconds int64; 2 nanos int32
Condition
  1 type string; 2 status string; 3 observedGeneration? int64; 4 lastTransitionTime Time; 5 reason string;
  6 message string
RawExtension
  1 raw bytes
DeleteOptions
  1 gracePeriodSeconds? *int64; 2 preconditions? *Preconditions; 3 orphanDependents? *bool;
  4 propagationPolicy? *string; 5 dryRun? string[]; 6 ignoreStoreReadErrorWithClusterBreakingPotential? *bool
Preconditions
  1 uid? *string; 2 resourceVersion? *string
ExtraValue
  1 items string[]
FieldSelectorRequirement
  1 key string; 2 operator string; 3 values? string[]
`;
