export const READ_CLOCK = `
local key = KEYS[1]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
`

/**
 * The format of a record, as Lua: `read`, `write` and `shown`, which is the form of a record in a reply (`reply.ts` reads it).
 *
 * A record is one string: a format version ('1'), its fields (a MessagePack array, in the order of HEAD and TAILS),
 * then the raw body. It takes less memory than a hash (`npm run measure:redis`). The retention is the key's expiry. The
 * format is frozen within a major version, and held by golden files.
 *
 * A record in flight or failed that has steps, or an operator's mark, has two fields more: its steps, in one list of four
 * values each (label, state, order, result; a result that is not kept is `false`), and whether it is marked.
 *
 * Anything that does not match this format exactly is reported as an error and left unchanged: it is never treated as
 * an absent record. (For a key of another type, GETRANGE replies WRONGTYPE.)
 *
 * A body is read only if it is sent: copying 1 MiB takes Redis a hundred times as long as the rest.
 */
export const RECORD_FUNCTIONS = `
local HEAD = { 'state', 'string', 'token', 'string', 'fingerprint', 'string', 'attempt', 'number' }
local TAILS = {
  ['in-flight'] = { 'uncertain', 'boolean', 'lease_until', 'number' },
  failed = { 'uncertain', 'boolean' },
  completed = {
    'status', 'number', 'status_message', 'string', 'headers', 'string', 'kept', 'boolean', 'body_bytes', 'number'
  }
}

local STEP_FIELDS = 4

local function unreadable(why)
  error({ err = 'UNREADABLE the record is ' .. why .. '; it was left as it is' })
end

local function take(names, fields, from, into)
  for i = 1, #names, 2 do
    local field = fields[from + (i + 1) / 2]
    if type(field) ~= names[i + 1] then unreadable('damaged') end
    into[names[i]] = field
  end
end

local function put(names, from, fields)
  for i = 1, #names, 2 do fields[#fields + 1] = from[names[i]] end
end

local FIRST_BYTES = 4096

local function first_bytes()
  local start = redis.call('GETRANGE', key, 0, FIRST_BYTES - 1)
  return start, #start < FIRST_BYTES and #start or redis.call('STRLEN', key)
end

local function read()
  local start, length = first_bytes()
  if length == 0 and redis.call('EXISTS', key) == 0 then return nil end
  if string.sub(start, 1, 1) ~= '1' then unreadable('of another format than version 1') end
  local intact, rest, fields = pcall(cmsgpack.unpack_one, start, 1)
  while not intact and #start < length do
    start = redis.call('GETRANGE', key, 0, 16 * #start - 1)
    intact, rest, fields = pcall(cmsgpack.unpack_one, start, 1)
  end
  if not intact or type(fields) ~= 'table' then unreadable('damaged') end
  local body_from = rest == -1 and #start or rest

  local record, answer = {}, {}
  take(HEAD, fields, 0, record)
  local tail = TAILS[record.state]
  local known = tail and (#HEAD + #tail) / 2
  local has_steps = tail and record.state ~= 'completed' and #fields == known + 2
  if not tail or (#fields ~= known and not has_steps) then unreadable('damaged') end
  if has_steps then
    record.steps, record.rerun = fields[known + 1], fields[known + 2]
    if type(record.steps) ~= 'table' or #record.steps % STEP_FIELDS ~= 0 or type(record.rerun) ~= 'boolean' then
      unreadable('damaged')
    end
  end
  take(tail, fields, #HEAD / 2, record.state == 'completed' and answer or record)
  if length - body_from ~= (answer.body_bytes or 0) then unreadable('damaged') end
  if record.state == 'completed' then
    answer.body_from = body_from
    record.answer = answer
  end
  return record
end

local function body_of(answer)
  if answer.body_bytes == 0 then return '' end
  return redis.call('GETRANGE', key, answer.body_from, -1)
end

local function write(record, expires_ms) -- without expires_ms, the key keeps its expiry
  local fields, body = {}, ''
  put(HEAD, record, fields)
  local answer = record.answer
  if answer then
    body = answer.body
    answer.body_bytes = #body
  end
  put(TAILS[record.state], answer or record, fields)
  local steps = record.steps or {}
  if not answer and (#steps > 0 or record.rerun) then
    fields[#fields + 1] = steps
    fields[#fields + 1] = record.rerun == true
  end
  local text = '1' .. cmsgpack.pack(fields) .. body
  if expires_ms then
    redis.call('SET', key, text, 'PX', expires_ms)
  else
    redis.call('SET', key, text, 'KEEPTTL')
  end
end

local function handed_over(steps)
  local kept = {}
  for i = 1, #(steps or {}), STEP_FIELDS do
    if steps[i + 1] ~= 'undone' then
      local n = #kept
      kept[n + 1], kept[n + 2], kept[n + 3], kept[n + 4] = steps[i], steps[i + 1], 0, steps[i + 3]
    end
  end
  return kept
end

local IN_FLIGHT, COMPLETED, FAILED = 2, 3, 4

local function shown(record, asker)
  local state, fingerprint, attempt = record.state, record.fingerprint, record.attempt
  if state == 'in-flight' then
    return { IN_FLIGHT, attempt, fingerprint, record.uncertain and 1 or 0, record.lease_until - now }
  elseif state == 'completed' then
    if asker and asker ~= fingerprint then return { COMPLETED, attempt, fingerprint } end
    local answer = record.answer
    return {
      COMPLETED, attempt, fingerprint .. answer.status_message .. answer.headers, #fingerprint, #answer.status_message,
      answer.status, answer.kept and 1 or 0, body_of(answer)
    }
  end
  return { FAILED, attempt, fingerprint, record.uncertain and 1 or 0 }
end
`

/** What most scripts begin with. */
export const RECORD = READ_CLOCK + RECORD_FUNCTIONS
