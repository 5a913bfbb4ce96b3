import type { Answer } from '../../core/record/record.js'
import { type IdempotencyOptions, NO_TRAITS, type Profile, type ProfileName, type ProfileTraits } from './options.js'
import { ietfDraft, type Problem, type ProblemCode, type RenderProblem, toProblemBody } from './problem.js'

type GivenOptions = Partial<IdempotencyOptions<never>>

interface Demand {
  readonly option: keyof GivenOptions
  readonly keeps: (given: GivenOptions) => boolean
  /** What the option must be, and the rule that says so. */
  readonly needs: string
}

interface ProfileTerms {
  readonly options: GivenOptions
  readonly traits: ProfileTraits
  /** Without them the text's rules cannot be kept. */
  readonly demands: readonly Demand[]
}

/** Agentic commerce, §6.3: "server MUST return the original response with the same HTTP status code". Only 5xx are exempt (§6.5). */
const keepEach = () => true

/**
 * By these the server says that it has completed nothing, and asks for the same request again: too slow, too early, too often, the
 * client has gone. The IETF draft replays "the result of the previously completed operation, success or an error" (§2.6), and names 429
 * beside 5xx as the resource's own (§2.7); universal commerce stores "the key with the operation result" (checkout), and names 429 beside
 * 503 for Retry-After (overview).
 */
const NO_RESULTS = [408, 425, 429, 499]
const keepResults = ({ status }: Answer) => !NO_RESULTS.includes(status)

const DAY_MS = 86_400_000

const createHeaderDemand = (rule: string): Demand => ({
  option: 'header',
  keeps: ({ header }) => String(header).toLowerCase() === 'idempotency-key',
  needs: `Idempotency-Key (${rule})`,
})

const createRetentionDemand = (rule: string): Demand => ({
  option: 'retentionMs',
  keeps: ({ retentionMs = DAY_MS }) => !(retentionMs < DAY_MS),
  needs: `at least ${DAY_MS} (${rule})`,
})

const createStatusDemand = (code: ProblemCode, rule: string, ...statuses: readonly number[]): Demand => ({
  option: 'problemStatuses',
  keeps: ({ problemStatuses }) => statuses.includes(problemStatuses?.[code] ?? Number(statuses[0])),
  needs: `${code}: ${statuses.join(' or ')} (${rule})`,
})

/** By name, so that an ES module and a CommonJS copy of a profile are the same. */
const TERMS: Readonly<Record<ProfileName, ProfileTerms>> = {
  ietfDraft07: {
    options: { problemStatuses: ietfDraft, keepFailure: keepResults },
    traits: NO_TRAITS,
    demands: [createHeaderDemand('§2: "The Idempotency-Key request header field"')],
  },
  agenticCommerce: {
    options: {
      required: true,
      methods: ['POST'],
      problemStatuses: { mismatched: 422 },
      keepFailure: keepEach,
      renderProblem: renderAgenticProblem,
    },
    traits: { keyPerPath: true, echoesKey: true },
    demands: [
      createHeaderDemand('§6.1'),
      {
        option: 'required',
        keeps: ({ required }) => required !== false,
        needs: 'true (§6.1: "A POST request without an Idempotency-Key header MUST be rejected")',
      },
      {
        option: 'methods',
        keeps: ({ methods }) => !Array.isArray(methods) || methods.includes('POST'),
        needs: 'methods with POST (§6.1)',
      },
      {
        option: 'unknownOutcome',
        keeps: ({ unknownOutcome }) => unknownOutcome !== 'refuse',
        needs: '\'rerun\' (§6.5: "A retry with the same key after a 5xx MUST be processed as a fresh request")',
      },
      createStatusDemand('key_missing', '§6.1', 400),
      // OpenAI's launch checks ask for "idempotency_conflict with HTTP 409" (its commerce guide "Agentic commerce in production").
      createStatusDemand('mismatched', '§6.4', 422, 409),
      createStatusDemand('in_flight', '§6.4', 409),
      createRetentionDemand('§6.6: "for at least 24 hours"'),
    ],
  },
  universalCommerce: {
    options: { retentionMs: 2 * DAY_MS, keepFailure: keepResults, renderProblem: renderUniversalProblem },
    traits: { keyPerPath: true, echoesKey: false },
    demands: [
      createHeaderDemand('Headers'),
      createRetentionDemand('Idempotency Key Requirements: "Minimum 24 hours"'),
      createStatusDemand('mismatched', 'Idempotency Key Requirements: "Reject with 409 Conflict"', 409),
      createStatusDemand('store_unavailable', 'Idempotency Key Requirements: "reject request with 503"', 503),
      {
        option: 'storeFailure',
        keeps: ({ storeFailure }) => storeFailure !== 'runUnprotected',
        needs: '\'refuse\' (Idempotency Key Requirements: "Fail closed (reject request with 503)")',
      },
    ],
  },
}

export function findProfileMistake(value: unknown): string | null {
  return findTerms(value) === undefined
    ? "ietfDraft07, agenticCommerce or universalCommerce, which 'once-per-key' exports"
    : null
}

function findTerms(profile: unknown): ProfileTerms | undefined {
  const { name } = (profile ?? {}) as Partial<Profile>
  return typeof name === 'string' && Object.hasOwn(TERMS, name) ? TERMS[name] : undefined
}

/** The defaults that a profile has in place of the usual ones. */
export function toProfileDefaults(profile: unknown): GivenOptions & Partial<ProfileTraits> {
  const terms = findTerms(profile)
  return { ...terms?.options, ...terms?.traits }
}

/** The given options with which the text's rules cannot be kept, a line each. */
export function findContradictions(_values: unknown, given: GivenOptions): string[] {
  const { profile } = given
  return (findTerms(profile)?.demands ?? [])
    .filter(({ option, keeps }) => given[option] !== undefined && !keeps(given))
    .map(({ option, needs }) => `${option}: the profile ${profile?.name} needs ${needs}`)
}

/** The codes of the protocol's own three; its schema leaves others to the implementation. */
const AGENTIC_CODES: Partial<Record<ProblemCode, string>> = {
  key_missing: 'idempotency_key_required',
  mismatched: 'idempotency_conflict',
  in_flight: 'idempotency_in_flight',
}

/** Its flat error object: "All idempotency errors use `type: "invalid_request"`". */
function renderAgenticProblem({ code, status, detail }: Problem): ReturnType<RenderProblem<never>> {
  const type = status < 500 ? 'invalid_request' : status === 503 ? 'service_unavailable' : 'processing_error'
  return { contentType: 'application/json', body: { type, code: AGENTIC_CODES[code] ?? code, message: detail } }
}

/** Universal commerce, error responses: "JSON body containing `code` and `content`". */
function renderUniversalProblem(problem: Problem): ReturnType<RenderProblem<never>> {
  return { body: { ...toProblemBody(problem), content: problem.detail } }
}
