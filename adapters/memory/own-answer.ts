import type { Answer, BeginReply, CommandReply, IdempotencyRecord } from '../../src/core/index.js'

export type AnyReply = BeginReply | CommandReply | { readonly record: IdempotencyRecord | null }

/** Replies carry a copy of the answer, because callers may modify theirs. */
export function withOwnAnswer<Reply extends AnyReply>(reply: Reply): Reply {
  if (!('record' in reply) || reply.record?.state !== 'completed' || reply.record.answer === null) return reply
  return { ...reply, record: { ...reply.record, answer: copyOf(reply.record.answer) } }
}

/** Plain fields, so that spreading the answer copies all of them. */
function copyOf({ status, statusMessage, headers, body }: Answer): Answer {
  return { status, statusMessage, headers, body }
}
