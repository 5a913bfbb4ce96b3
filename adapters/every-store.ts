/** The types of what the commands of each store take and return, for whoever wraps one. */
export type {
  Answer,
  BeginReply,
  Claim,
  CommandReply,
  Forgetting,
  IdempotencyRecord,
  ListedRecord,
  ListedRecords,
  Ownership,
  PreviousOutcome,
  Resolution,
  ShownStep,
  Step,
  StepChange,
  StoreEvent,
} from '../src/core/index.js'
