// Written by `python -m tools.ui_types` from the OpenAPI document: do not edit.

export type NoQuery = Record<string, never>;

export type Renewal = "cancel" | "lost" | "ok" | "pause";

export type State = "cancelled" | "failed" | "paused" | "queued" | "running" | "succeeded";

export type Verdict = "already" | "applied" | "stale";

export interface About {
  key?: string | null;
}

export interface AgainBody {
  args?: Record<string, unknown> | null;
  note?: string | null;
}

export interface AttemptLog {
  fence: number;
  worker: string;
  outcome: string;
  claimed_at: string;
  ended_at: string;
  text: string;
}

export interface AuditEntry {
  at: string;
  by: string;
  via: string;
  action: string;
  subjects: string[];
  count: number;
  changed: number;
  result: string;
  note: string | null;
  request: string | null;
  address: string | null;
  id: string;
}

export interface AuditListed {
  by?: string | null;
  action?: string | null;
  subject?: string | null;
  since?: string | null;
  until?: string | null;
  limit?: number;
  cursor?: string | null;
}

export interface AuditQuery {
  by?: string | null;
  action?: string | null;
  subject?: string | null;
  since?: string | null;
  until?: string | null;
}

export interface BackfillBody {
  from: string;
  to: string;
  dry_run?: boolean;
  note?: string | null;
}

export interface BackfillTick {
  nominal: string;
  run: string | null;
  created: boolean | null;
}

export interface Batch {
  runs: unknown[];
  atomic?: boolean;
}

export interface BatchAnswer {
  items: BatchItem[];
  next: null;
  now: string;
}

export interface BatchItem {
  status: number;
  run?: string | null;
  reason?: string | null;
  detail?: string | null;
  errors?: Flaw[];
}

export interface BreakerBody {
  failures: number;
  cool_down?: number | null;
}

export interface Changed {
  changed: boolean;
  state: string;
}

export interface Check {
  verdict: "ok" | "warn" | "fail";
  check: string;
  detail: string;
  advice: string | null;
}

export interface ClaimBody {
  worker: string;
  n: number;
  tasks: string[];
  free?: number;
  lease?: number;
  wait?: number;
  queues?: string[];
  report?: WorkerReport;
}

export interface Count {
  count: number;
  more: boolean;
  groups: CountGroups[] | null;
}

export interface CountGroups {
  value: string | null;
  count: number;
}

export interface CountQuery {
  state?: State[];
  task?: string[];
  key?: string | null;
  queue?: string[];
  group?: string | null;
  schedule?: string | null;
  flow?: string | null;
  period?: string | null;
  origin?: string | null;
  worker?: string | null;
  error?: string | null;
  reason?: string | null;
  retry_of?: string | null;
  since?: string | null;
  until?: string | null;
  by?: "created" | "due" | "finished";
  q?: string | null;
  order?: "created" | "due" | "finished";
  at_most?: number;
  group_by?: "error" | "state" | "task" | null;
}

export interface DecisionCount {
  task: string;
  key: string;
  reason: string;
  count: number;
  first_at: string;
  last_at: string;
  run: string | null;
  by: string | null;
  note: string | null;
}

export interface DecisionQuery {
  task?: string | null;
  key?: string | null;
  reason?: string | null;
  by?: string | null;
  since?: string | null;
  limit?: number;
}

export interface Directed {
  worker: string;
  changed: boolean;
  quiet: boolean;
  stop: boolean;
}

export interface Environment {
  name: string;
  colour: "amber" | "blue" | "green" | "grey" | "red" | "violet";
}

export interface ErrorGroup {
  task: string;
  type: string;
  message: string;
  count: number;
  first: string;
  last: string;
  runs: string[];
  spark: number[];
}

export interface ErrorQuery {
  task?: string[];
  since?: string | null;
  limit?: number;
}

export interface Filter {
  state?: State[];
  task?: string[];
  key?: string | null;
  queue?: string[];
  group?: string | null;
  schedule?: string | null;
  flow?: string | null;
  period?: string | null;
  origin?: string | null;
  worker?: string | null;
  error?: string | null;
  reason?: string | null;
  retry_of?: string | null;
  since?: string | null;
  until?: string | null;
  by?: "created" | "due" | "finished";
  q?: string | null;
  order?: "created" | "due" | "finished";
}

export interface Finding {
  code: string;
  level: "error" | "note" | "warning";
  message: string;
  hint: string;
}

export interface FireView {
  weekday: string;
  local: string;
  utc: string;
  left: number;
}

export interface Flaw {
  pointer: string;
  detail: string;
}

export interface Flow {
  flow: string;
  steps: number;
  period: string;
  complete: boolean;
  done: number;
  running: number;
  waiting: number;
  blocked: number;
  failed: number;
  absent: number;
  next_recheck: string | null;
  zone?: string;
  periods?: FlowPeriods[];
}

export interface FlowPeriods {
  period: string;
  done: boolean;
  steps: FlowPeriodsSteps[];
}

export interface FlowPeriodsSteps {
  flow: string;
  period: string;
  step: string;
  task: string;
  state: string;
  since: string | null;
  seconds: number | null;
  run: string | null;
  attempts: number;
  after: string[];
  blocked_by: string[];
  error: string | null;
}

export interface FlowRow {
  flow: string;
  steps: number;
  period: string;
  complete: boolean;
  done: number;
  running: number;
  waiting: number;
  blocked: number;
  failed: number;
  absent: number;
  next_recheck: string | null;
}

export interface GetAuditAnswer {
  items: AuditEntry[];
  next: string | null;
  now: string;
}

export interface GetDecisionsAnswer {
  items: DecisionCount[];
  next: string | null;
  now: string;
  more: boolean;
}

export interface GetDoctorAnswer {
  items: Check[];
  next: string | null;
  now: string;
}

export interface GetErrorsAnswer {
  items: ErrorGroup[];
  next: string | null;
  now: string;
  more: boolean;
  searched_back_to?: string | null;
}

export interface GetFlowsAnswer {
  items: FlowRow[];
  next: string | null;
  now: string;
}

export interface GetFlowsNamePeriodsAnswer {
  items: FlowPeriods[];
  next: string | null;
  now: string;
}

export interface GetMarksAnswer {
  items: Mark[];
  next: string | null;
  now: string;
  more: boolean;
}

export interface GetOperationsAnswer {
  items: Operation[];
  next: string | null;
  now: string;
}

export interface GetPlansNameAnswer {
  items: Run[];
  next: string | null;
  now: string;
}

export interface GetRunsAnswer {
  items: Run[];
  next: string | null;
  now: string;
  searched_back_to?: string | null;
}

export interface GetRunsIdLogAnswer {
  items: AttemptLog[];
  next: string | null;
  now: string;
}

export interface GetSchedulesAnswer {
  items: ScheduleRow[];
  next: string | null;
  now: string;
}

export interface GetSchedulesIdTicksAnswer {
  items: Tick[];
  next: string | null;
  now: string;
}

export interface GetSessionsAnswer {
  items: GetSessionsAnswerItems[];
  next: string | null;
  now: string;
}

export interface GetSessionsAnswerItems {
  id: string;
  created_at: string;
  expires_at: string | null;
  here: boolean;
}

export interface GetStatsAnswer {
  items: Stat[];
  next: string | null;
  now: string;
}

export interface GetTasksAnswer {
  items: Task[];
  next: string | null;
  now: string;
}

export interface GetTasksNameKeysAnswer {
  items: GetTasksNameKeysAnswerItems[];
  next: string | null;
  now: string;
  more?: boolean;
}

export interface GetTasksNameKeysAnswerItems {
  key: string;
  run: string | null;
  state: string | null;
  due_at: string | null;
  rests_until: string | null;
  breaker: boolean;
  succeeded_at: string | null;
  finished_at: string | null;
  failures: number;
}

export interface GetTimelineAnswer {
  items: TimelineRow[];
  next: string | null;
  now: string;
  from?: string;
  to?: string;
  minutes_before?: string | null;
}

export interface GetTokensAnswer {
  items: GetTokensAnswerItems[];
  next: string | null;
  now: string;
}

export interface GetTokensAnswerItems {
  name: string;
  tokens: number;
  rights: string[];
  tasks: string[];
  queues: string[];
  namespaces: string[];
  expires_at: string | null;
  per_minute: number | null;
}

export interface GetWorkersAnswer {
  items: Worker[];
  next: string | null;
  now: string;
}

export interface KeepBody {
  succeeded?: number;
  failed?: number;
  most?: number;
  least?: number;
}

export interface KeysQuery {
  q?: string | null;
}

export interface LimitBody {
  total?: number | null;
  per_key?: number | null;
}

export interface Lineage {
  run: string;
  origin: RunOrigin;
  group: string | null;
  retry_of: LineageRetryOf[];
  retries: LineageRetryOf[];
  before: LineageRetryOf[];
  after: LineageRetryOf[];
}

export interface LineageRetryOf {
  id: string;
  task: string;
  state: string;
  created_at: string;
  finished_at: string | null;
  step: string | null;
}

export interface Listed {
  state?: State[];
  task?: string[];
  key?: string | null;
  queue?: string[];
  group?: string | null;
  schedule?: string | null;
  flow?: string | null;
  period?: string | null;
  origin?: string | null;
  worker?: string | null;
  error?: string | null;
  reason?: string | null;
  retry_of?: string | null;
  since?: string | null;
  until?: string | null;
  by?: "created" | "due" | "finished";
  q?: string | null;
  order?: "created" | "due" | "finished";
  limit?: number;
  cursor?: string | null;
}

export interface LoginBody {
  token: string;
}

export interface Mark {
  task: string;
  key: string;
  succeeded_at: string | null;
  finished_at: string | null;
  failures: number;
}

export interface MarkQuery {
  task?: string | null;
  key?: string | null;
  limit?: number;
}

export interface Me {
  name: string;
  role: string | null;
  rights: string[];
  tasks: string[];
  expires: string | null;
  namespaces?: string[];
  environment?: Environment | null;
}

export interface NewRunBody {
  args?: Record<string, unknown>;
  id?: string | null;
  key?: string | null;
  queue?: string | null;
  priority?: number | null;
  delay?: number | null;
  at?: string | null;
  expires?: number | string | null;
  unique?: "active" | "done" | "queued" | null;
  within?: number | null;
  join?: "keep" | "push" | "refuse" | "set" | null;
  timeout?: number | null;
  retry?: number | null;
  lost?: "fail" | "retry" | null;
  headers?: Record<string, string> | null;
  unknown_ok?: boolean;
  note?: string | null;
  task: string;
}

export interface NoteBody {
  note?: string | null;
}

export interface NoteQuery {
  note?: string | null;
}

export interface Operation {
  id: string;
  action: string;
  filter: unknown;
  due_at: string | null;
  note: string | null;
  by: string | null;
  state: string;
  created_at: string;
  finished_at: string | null;
  progress: unknown;
  done: number;
  skipped: number;
  skipped_by: Record<string, number>;
  error: string | null;
  of: string | null;
  undo_until: string | null;
}

export interface OperationBody {
  action: "cancel" | "delete" | "pause" | "reschedule" | "resume" | "retry";
  filter?: Filter | null;
  ids?: string[] | null;
  dry_run?: boolean;
  expect?: number | null;
  at?: string | null;
  delay?: number | null;
  note?: string | null;
}

export interface OperationsQuery {
  limit?: number;
  cursor?: string | null;
}

export interface OverrideBody {
  enabled?: boolean | null;
  limit?: number | LimitBody | null;
  rate?: RateBody | null;
  retry?: number | RetryBody | null;
  timeout?: number | null;
  note?: string | null;
}

export interface PauseBody {
  until?: string | null;
  note?: string | null;
}

export interface PeriodsQuery {
  last?: number;
}

export interface PlanQuery {
  period: string;
  limit?: number;
  cursor?: string | null;
}

export interface PostFlowsNameStartAnswer {
  items: Started[];
  next: string | null;
  now: string;
}

export interface PostOperationsAnswer {
  matched: number;
  more: boolean;
  sample: Run[];
  by_task: Record<string, number>;
  by_state: Record<string, number>;
}

export interface PostSchedulesIdBackfillAnswer {
  items: BackfillTick[];
  next: string | null;
  now: string;
}

export interface PostTasksNameTryAnswer {
  accepted: boolean;
  reason: string;
  run: string | null;
  due_at: string;
  guards: PostTasksNameTryAnswerGuards[];
}

export interface PostTasksNameTryAnswerGuards {
  guard: string;
  says: string;
  rule: string;
}

export interface Preview {
  from: string;
  to: string;
  until: string;
  zone: string;
  seats?: number;
  durations?: Record<string, unknown>;
  fires: unknown[];
  flows?: unknown[];
  deadlines?: unknown[];
  frequent?: unknown[];
  collisions: unknown[];
  hours: unknown[];
  paused?: string[];
  disabled?: string[];
  unreadable?: string[];
}

export interface PreviewQuery {
  days?: number;
  tz?: string | null;
  task?: string | null;
}

export interface ProblemBody {
  type: string;
  title: string;
  status: number;
  detail: string;
  instance: string;
  reason?: string | null;
  errors?: Flaw[];
  run?: string | null;
  retry_at?: string | null;
}

export interface PullError {
  message?: string;
  type?: string;
  traceback?: string;
}

export interface PullLease {
  run: string;
  fence: number;
}

export interface PullNote {
  progress?: PullProgress | null;
  saved?: unknown;
}

export interface PullOutcome {
  run: string;
  fence: number;
  outcome: "cancelled" | "discard" | "failed" | "paused" | "release" | "retry_after" | "skipped" | "snooze" | "succeeded" | "timed_out";
  result?: unknown;
  error?: PullError | null;
  after?: number;
  seconds?: number | null;
  saved?: unknown;
}

export interface PullProgress {
  share: number;
  message?: string;
}

export interface Pulled {
  now: string;
  n: number;
  runs: PulledRun[];
  wake: number | null;
  quiet: boolean;
  stop: boolean;
}

export interface PulledRun {
  id: string;
  task: string;
  args: Record<string, unknown>;
  key: string | null;
  fence: number;
  attempt: number;
  until: string;
  deadline: string | null;
  headers: Record<string, string>;
  saved: unknown;
  results: Record<string, unknown>;
}

export interface RateBody {
  n: number;
  per?: number;
  burst?: number;
  per_key?: boolean;
}

export interface ReadyQuery {
  max_age?: number | null;
}

export interface RenewBody {
  worker: string;
  leases: PullLease[];
  lease?: number;
  notes?: Record<string, PullNote>;
}

export interface Renewed {
  now: string;
  items: Renewal[];
}

export interface RerunBody {
  step: string;
  following?: boolean;
  note?: string | null;
}

export interface Reset {
  flow: string;
  period: string;
  reset: string[];
}

export interface ResetQuery {
  step?: string | null;
  following?: boolean;
  note?: string | null;
}

export interface RetryBody {
  limit?: number | null;
  backoff?: string;
  delay?: number;
  max_delay?: number;
  jitter?: number;
  factor?: number;
}

export interface Run {
  id: string;
  state: "queued" | "running" | "paused" | "succeeded" | "failed" | "cancelled";
  due_at: string;
  expires_at: string | null;
  fence: number;
  failures: number;
  losses: number;
  worker: string | null;
  claimed_at: string | null;
  until: string | null;
  cancel_requested: boolean;
  pause_requested: boolean;
  parked: boolean;
  reason: string | null;
  note: string | null;
  error: RunError | null;
  finished_at: string | null;
  attempts: RunAttempts[];
  progress: RunProgress | null;
  task: string;
  key: string | null;
  unique_key: string | null;
  writes_mark: boolean;
  priority: number;
  created_at: string;
  needs: string[];
  awaited: boolean;
  cooldowns: RunCooldowns[];
  touches: number;
  touched_at: string;
  queue: string;
  share: string | null;
  result: unknown;
  saved: unknown;
  args: unknown;
  origin: RunOrigin;
  policy: RunPolicy;
  member: RunMember | null;
  headers: Record<string, unknown>;
  on_end: RunOnEnd[];
  unique_in: string | null;
}

export interface RunAttempts {
  fence: number;
  worker: string;
  outcome: string;
  claimed_at: string;
  ended_at: string;
  seconds: number | null;
  error: RunError | null;
  warnings: string[];
  log: boolean;
  trace: string;
}

export interface RunCooldowns {
  failures: number;
  seconds: number;
  reason: string;
}

export interface RunError {
  type: string;
  message: string;
  traceback: string;
}

export interface RunMember {
  group: string;
  step: string;
  stops: boolean;
  takes: Record<string, unknown>;
  coded: boolean;
  spreads: RunMemberSpreads | null;
  gathers: RunMemberGathers | null;
}

export interface RunMemberGathers {
  fan: string;
  parameter: string;
}

export interface RunMemberSpreads {
  fan: string;
  task: string;
  args: string;
  policy: RunPolicy;
  priority: number;
  queue: string;
  expires_after: number | null;
  expires_at: string | null;
  delay: number;
  due_at: string | null;
  key: string | null;
  headers: Record<string, unknown> | null;
  on_end: string;
}

export interface RunOnEnd {
  state: "queued" | "running" | "paused" | "succeeded" | "failed" | "cancelled";
  task: string;
  policy: RunPolicy;
  priority: number;
  queue: string;
}

export interface RunOrigin {
  kind: string;
  of: string | null;
  nominal: string | null;
  period: string | null;
}

export interface RunPatch {
  priority?: number | null;
  due_at?: string | null;
  expires_at?: string | null;
  args?: Record<string, unknown> | null;
  note?: string | null;
}

export interface RunPolicy {
  retry: RunPolicyRetry;
  timeout: number | null;
  lost: "retry" | "fail";
  max_losses: number;
  own_retry: boolean;
  overridden_retry: boolean;
}

export interface RunPolicyRetry {
  limit: number | null;
  backoff: "exponential" | "linear" | "fixed";
  delay: number;
  max_delay: number;
  jitter: number;
  rules: unknown;
  factor: number;
  after: unknown;
}

export interface RunProgress {
  share: number;
  message: string;
}

export interface Scale {
  value: number;
  due: number;
  running: number;
  more: boolean;
}

export interface ScaleQuery {
  task?: string[];
  queue?: string[];
}

export interface Schedule {
  id: string;
  task: string;
  state: string;
  note: string | null;
  paused_until: string | null;
  next_at: string | null;
  left: number | null;
  last_at: string | null;
  passed: number | null;
  last: string | null;
  last_run: string | null;
  trigger: string;
  words: string;
  zone: string;
  owner: string | null;
  kind: string;
  deadline: unknown;
  once: unknown;
  fires_at: string | null;
  args: unknown;
  key: string;
  priority: number;
  queue: string;
  overlap: string;
  unique: unknown;
  catch_up: string;
  grace: number | null;
  timeout: number | null;
  retry: RunPolicyRetry | null;
  lost: string;
  expect: string | null;
  start: string | null;
  end: string | null;
  buffer: number | null;
  times: number | null;
  made: number | null;
  breaker: unknown;
  anchor: string | null;
  since: string | null;
  version: number;
  upcoming: string[];
  firings: ScheduleRowFirings[];
  findings?: ScheduleFindings[];
}

export interface ScheduleBody {
  trigger: string;
  task: string;
  args?: Record<string, unknown>;
  tz?: string | null;
  key?: string | null;
  priority?: number | null;
  queue?: string | null;
  overlap?: "allow" | "buffer" | "queue" | "replace" | "skip" | null;
  catch_up?: "all" | "latest" | "skip";
  grace?: number | null;
  start?: string | null;
  end?: string | null;
  buffer?: number | null;
  times?: number | null;
  breaker?: BreakerBody | null;
  expect?: string | null;
  timeout?: number | null;
  retry?: number | RetryBody | null;
  lost?: "fail" | "retry" | null;
  paused?: boolean;
  unknown_ok?: boolean;
  note?: string | null;
}

export interface ScheduleFindings {
  code: string;
  level: "error" | "warning" | "note";
  message: string;
  hint: string;
}

export interface ScheduleQuery {
  task?: string | null;
  paused?: boolean | null;
  owner?: string | null;
  q?: string | null;
  last?: number;
  limit?: number;
  cursor?: string | null;
}

export interface ScheduleRow {
  id: string;
  task: string;
  state: string;
  note: string | null;
  paused_until: string | null;
  next_at: string | null;
  left: number | null;
  last_at: string | null;
  passed: number | null;
  last: string | null;
  last_run: string | null;
  trigger: string;
  words: string;
  zone: string;
  owner: string | null;
  kind: string;
  firings?: ScheduleRowFirings[];
}

export interface ScheduleRowFirings {
  nominal: string;
  reason: string;
  run: string | null;
  state: string | null;
  outcome: string;
}

export interface SettleBody {
  worker: string;
  outcomes: PullOutcome[];
}

export interface Settled {
  now: string;
  items: Verdict[];
}

export interface StartBody {
  period?: string | null;
  note?: string | null;
}

export interface Started {
  flow: string;
  period: string;
  step: string;
  reason: string;
  run: string;
}

export interface Stat {
  minute: string;
  task: string | null;
  succeeded: number;
  failed: number;
  retried: number;
  other: number;
  wait_p50: number | null;
  wait_p95: number | null;
  run_p50: number | null;
  run_p95: number | null;
  wait_seconds: number;
  run_seconds: number;
  origin: string | null;
  cancelled: number;
  snoozed: number;
  lost: number;
}

export interface StatQuery {
  minutes?: number;
  every?: "all" | "day" | "hour" | "minute";
  group_by?: ("origin" | "task")[];
  task?: string | null;
  origin?: string | null;
}

export interface StreamQuery {
  topics?: string | null;
  task?: string | null;
  run?: string | null;
  flow?: string | null;
  wait?: number | null;
}

export interface Submitted {
  run: string;
  reason: string;
  created: boolean;
  ended?: Record<string, unknown> | null;
}

export interface SwitchBody {
  note?: string | null;
  key?: string | null;
}

export interface Switched {
  changed: boolean;
}

export interface Task {
  task: string;
  parameters: string | null;
  executor: string | null;
  retries: number | null;
  timeout: number | null;
  enabled: boolean;
  enabled_here: boolean | null;
  paused: boolean;
  paused_until: string | null;
  paused_keys: string[];
  overrides: TaskOverrides | null;
  limit: TaskOverridesLimit | null;
  limits: TaskOverridesLimit[];
  rate: TaskOverridesRate | null;
  activity: TaskActivity | null;
  priority: number;
  queue: string;
  share: TaskShare | null;
  max_pending: number | null;
  keep: TaskKeep | null;
  queued: number;
  running: number;
  paused_runs: number;
  defined: boolean;
  kind: string;
  steps: number | null;
  description: string;
}

export interface TaskActivity {
  after: number;
  key: string | TaskActivityKey | null;
  mode: "coalesce" | "debounce";
  max_wait: number | null;
  spacing: number | null;
  breaker: TaskActivityBreaker | null;
  expires: number | null;
}

export interface TaskActivityBreaker {
  failures: number;
  cool_down: number | null;
}

export interface TaskActivityKey {
  device: boolean;
  agent: boolean;
  default_device: string;
  default_agent: string;
}

export interface TaskBody {
  description?: string;
  schema?: Record<string, unknown> | null;
  retry?: number | RetryBody | null;
  timeout?: number | null;
  lost?: "fail" | "retry";
  limit?: number | LimitBody | null;
  rate?: RateBody | null;
  unique?: "active" | "done" | "queued" | null;
  key?: string | null;
  queue?: string;
  max_pending?: number | null;
  keep?: number | KeepBody | null;
  note?: string | null;
}

export interface TaskDetail {
  task: string;
  parameters: string | null;
  executor: string | null;
  retries: number | null;
  timeout: number | null;
  enabled: boolean;
  enabled_here: boolean | null;
  paused: boolean;
  paused_until: string | null;
  paused_keys: string[];
  overrides: TaskOverrides | null;
  limit: TaskOverridesLimit | null;
  limits: TaskOverridesLimit[];
  rate: TaskOverridesRate | null;
  activity: TaskActivity | null;
  priority: number;
  queue: string;
  share: TaskShare | null;
  max_pending: number | null;
  keep: TaskKeep | null;
  queued: number;
  running: number;
  paused_runs: number;
  defined: boolean;
  kind: string;
  steps: number | null;
  description: string;
  oldest_due_at: string | null;
  workers: number;
  limits_used: TaskDetailLimitsUsed[];
  rate_left: TaskDetailRateLeft | null;
  last_hour: TaskDetailLastHour;
}

export interface TaskDetailLastHour {
  ended: number;
  failed: number;
  wait_p95: number | null;
  run_p95: number | null;
}

export interface TaskDetailLimitsUsed {
  name: string | null;
  total: number;
  used: number;
}

export interface TaskDetailRateLeft {
  left: number;
  opens_at: string;
}

export interface TaskKeep {
  succeeded: number;
  failed: number;
  most: number;
  least: number;
}

export interface TaskOverrides {
  version: number;
  enabled: boolean | null;
  limit: TaskOverridesLimit | null;
  rate: TaskOverridesRate | null;
  retry: TaskOverridesRetry | null;
  timeout: number | null;
  note: string | null;
  by: string | null;
  at: string;
}

export interface TaskOverridesLimit {
  total: number | null;
  per_key: number | null;
  name: string | null;
}

export interface TaskOverridesRate {
  n: number;
  per: number;
  burst: number;
  per_key: boolean;
}

export interface TaskOverridesRetry {
  limit: number | null;
  backoff: string;
  delay: number;
  max_delay: number;
  jitter: number;
  factor: number;
}

export interface TaskPauseBody {
  note?: string | null;
  key?: string | null;
  until?: string | null;
}

export interface TaskShare {
  template: string;
  weights: Record<string, unknown>;
}

export interface Tick {
  nominal: string;
  fires_at: string;
  past: boolean;
  reason: string | null;
  run: string | null;
  state: string | null;
  outcome: string | null;
}

export interface TickQuery {
  from?: string | null;
  to?: string | null;
  limit?: number;
}

export interface TimelineQuery {
  from?: string | null;
  to?: string | null;
  by?: "schedule" | "task" | "worker";
  px?: number;
  task?: string | null;
  row_after?: string;
}

export interface TimelineRow {
  name: string;
  segments: TimelineRowSegments[];
}

export interface TimelineRowSegments {
  left: number;
  right: number;
  outcome: string;
  count: number;
}

export interface TouchBody {
  args?: Record<string, unknown>;
  key?: string | null;
  note?: string | null;
}

export interface Touched {
  accepted: boolean;
  reason: string;
  run: string | null;
  due_at: string | null;
}

export interface TriedBody {
  args?: Record<string, unknown>;
  id?: string | null;
  key?: string | null;
  queue?: string | null;
  priority?: number | null;
  delay?: number | null;
  at?: string | null;
  expires?: number | string | null;
  unique?: "active" | "done" | "queued" | null;
  within?: number | null;
  join?: "keep" | "push" | "refuse" | "set" | null;
  timeout?: number | null;
  retry?: number | null;
  lost?: "fail" | "retry" | null;
  headers?: Record<string, string> | null;
  unknown_ok?: boolean;
  note?: string | null;
  task?: string | null;
}

export interface TriggerBody {
  text: string;
  tz?: string | null;
  after?: string | null;
  count?: number;
}

export interface TriggerView {
  text: string;
  words: string;
  zone: string;
  from: string;
  fires: FireView[];
  findings: Finding[];
}

export interface UndoneView {
  done: number;
  skipped: number;
}

export interface Waiting {
  wait?: number;
  since_fence?: number | null;
}

export interface Why {
  subject: string;
  kind: string;
  answer: string;
  held: boolean;
  changes_at: string | null;
  facts: WhyFacts[];
}

export interface WhyFacts {
  about: string;
  text: string;
  holds: boolean;
  until: string | null;
  link: string | null;
}

export interface WhyQuery {
  subject: string;
  key?: string | null;
}

export interface Word {
  status: string;
}

export interface Worker {
  name: string;
  standing: string;
  host: string;
  pid: number;
  seats: number;
  held: number;
  overdue: number;
  idle: boolean;
  tasks: string[];
  queues: string[];
  seen_at: string;
  silent_for: number;
  version: string;
  quiet: boolean;
  began_at: string | null;
  ahead: number;
  stalls: WorkerStalls[];
}

export interface WorkerReport {
  host?: string;
  pid?: number;
  version?: string;
  seats?: number;
}

export interface WorkerStalls {
  what: string;
  seconds: number;
  task: string | null;
  run: string | null;
  over_for: number | null;
  stack: string | null;
}

export interface Routes {
  "GET /me": { query: NoQuery; body: null; answer: Me };
  "POST /session": { query: NoQuery; body: LoginBody; answer: null };
  "DELETE /session": { query: NoQuery; body: null; answer: null };
  "GET /sessions": { query: NoQuery; body: null; answer: GetSessionsAnswer };
  "DELETE /sessions/{id}": { query: NoQuery; body: null; answer: null };
  "GET /tokens": { query: NoQuery; body: null; answer: GetTokensAnswer };
  "POST /runs": { query: NoQuery; body: NewRunBody; answer: Submitted };
  "GET /runs": { query: { state?: State[]; task?: string[]; key?: string | null; queue?: string[]; group?: string | null; schedule?: string | null; flow?: string | null; period?: string | null; origin?: string | null; worker?: string | null; error?: string | null; reason?: string | null; retry_of?: string | null; since?: string | null; until?: string | null; by?: "created" | "due" | "finished"; q?: string | null; order?: "created" | "due" | "finished"; limit?: number; cursor?: string | null }; body: null; answer: GetRunsAnswer };
  "POST /runs/batch": { query: NoQuery; body: Batch; answer: BatchAnswer };
  "GET /runs/{id}": { query: { wait?: number; since_fence?: number | null }; body: null; answer: Run };
  "PATCH /runs/{id}": { query: NoQuery; body: RunPatch; answer: Run };
  "DELETE /runs/{id}": { query: { note?: string | null }; body: null; answer: null };
  "GET /runs/{id}/log": { query: NoQuery; body: null; answer: GetRunsIdLogAnswer };
  "GET /runs/{id}/result": { query: NoQuery; body: null; answer: Record<string, unknown> };
  "GET /runs/{id}/why": { query: NoQuery; body: null; answer: Why };
  "POST /runs/{id}/cancel": { query: NoQuery; body: NoteBody; answer: Changed };
  "POST /runs/{id}/pause": { query: NoQuery; body: NoteBody; answer: Changed };
  "POST /runs/{id}/resume": { query: NoQuery; body: NoteBody; answer: Changed };
  "GET /runs/count": { query: { state?: State[]; task?: string[]; key?: string | null; queue?: string[]; group?: string | null; schedule?: string | null; flow?: string | null; period?: string | null; origin?: string | null; worker?: string | null; error?: string | null; reason?: string | null; retry_of?: string | null; since?: string | null; until?: string | null; by?: "created" | "due" | "finished"; q?: string | null; order?: "created" | "due" | "finished"; at_most?: number; group_by?: "error" | "state" | "task" | null }; body: null; answer: Count };
  "GET /runs/{id}/lineage": { query: NoQuery; body: null; answer: Lineage };
  "POST /runs/{id}/retry": { query: NoQuery; body: AgainBody; answer: Submitted };
  "POST /operations": { query: NoQuery; body: OperationBody; answer: PostOperationsAnswer | Operation };
  "GET /operations": { query: { limit?: number; cursor?: string | null }; body: null; answer: GetOperationsAnswer };
  "GET /operations/{id}": { query: NoQuery; body: null; answer: Operation };
  "POST /operations/{id}/stop": { query: NoQuery; body: NoteBody; answer: Changed };
  "POST /operations/{id}/undo": { query: NoQuery; body: NoteBody; answer: Operation };
  "GET /tasks": { query: NoQuery; body: null; answer: GetTasksAnswer };
  "GET /tasks/{name}": { query: NoQuery; body: null; answer: TaskDetail };
  "PUT /tasks/{name}": { query: NoQuery; body: TaskBody; answer: Task };
  "PATCH /tasks/{name}": { query: NoQuery; body: OverrideBody; answer: Task };
  "GET /tasks/{name}/schema": { query: NoQuery; body: null; answer: Record<string, unknown> };
  "GET /tasks/{name}/keys": { query: { q?: string | null }; body: null; answer: GetTasksNameKeysAnswer };
  "GET /tasks/{name}/why": { query: { key?: string | null }; body: null; answer: Why };
  "POST /tasks/{name}/pause": { query: NoQuery; body: TaskPauseBody; answer: Switched };
  "POST /tasks/{name}/resume": { query: NoQuery; body: SwitchBody; answer: Switched };
  "POST /tasks/{name}/try": { query: NoQuery; body: TriedBody; answer: PostTasksNameTryAnswer };
  "POST /tasks/{name}/touch": { query: NoQuery; body: TouchBody; answer: Touched };
  "POST /claim": { query: NoQuery; body: ClaimBody; answer: Pulled };
  "POST /renew": { query: NoQuery; body: RenewBody; answer: Renewed };
  "POST /settle": { query: NoQuery; body: SettleBody; answer: Settled };
  "GET /schedules": { query: { task?: string | null; paused?: boolean | null; owner?: string | null; q?: string | null; last?: number; limit?: number; cursor?: string | null }; body: null; answer: GetSchedulesAnswer };
  "GET /schedules/{id}": { query: NoQuery; body: null; answer: Schedule };
  "PUT /schedules/{id}": { query: NoQuery; body: ScheduleBody; answer: Schedule };
  "DELETE /schedules/{id}": { query: { note?: string | null }; body: null; answer: null };
  "GET /schedules/{id}/ticks": { query: { from?: string | null; to?: string | null; limit?: number }; body: null; answer: GetSchedulesIdTicksAnswer };
  "POST /schedules/{id}/pause": { query: NoQuery; body: PauseBody; answer: Switched };
  "POST /schedules/{id}/resume": { query: NoQuery; body: NoteBody; answer: Switched };
  "POST /schedules/{id}/run-now": { query: NoQuery; body: NoteBody; answer: Submitted };
  "POST /schedules/{id}/backfill": { query: NoQuery; body: BackfillBody; answer: PostSchedulesIdBackfillAnswer };
  "POST /triggers/explain": { query: NoQuery; body: TriggerBody; answer: TriggerView };
  "GET /preview": { query: { days?: number; tz?: string | null; task?: string | null }; body: null; answer: Preview };
  "GET /plans/{name}": { query: { period: string; limit?: number; cursor?: string | null }; body: null; answer: GetPlansNameAnswer };
  "GET /flows": { query: NoQuery; body: null; answer: GetFlowsAnswer };
  "GET /flows/{name}": { query: NoQuery; body: null; answer: Flow };
  "GET /flows/{name}/periods": { query: { last?: number }; body: null; answer: GetFlowsNamePeriodsAnswer };
  "GET /flows/{name}/periods/{period}": { query: NoQuery; body: null; answer: Flow };
  "DELETE /flows/{name}/periods/{period}": { query: { step?: string | null; following?: boolean; note?: string | null }; body: null; answer: Reset };
  "POST /flows/{name}/start": { query: NoQuery; body: StartBody; answer: PostFlowsNameStartAnswer };
  "POST /flows/{name}/periods/{period}/rerun": { query: NoQuery; body: RerunBody; answer: PostFlowsNameStartAnswer };
  "GET /workers": { query: NoQuery; body: null; answer: GetWorkersAnswer };
  "GET /workers/{name}": { query: NoQuery; body: null; answer: Worker };
  "POST /workers/{name}/quiet": { query: NoQuery; body: NoteBody; answer: Directed };
  "POST /workers/{name}/resume": { query: NoQuery; body: NoteBody; answer: Directed };
  "POST /workers/{name}/stop": { query: NoQuery; body: NoteBody; answer: Directed };
  "GET /marks": { query: { task?: string | null; key?: string | null; limit?: number }; body: null; answer: GetMarksAnswer };
  "PUT /marks/{task}/{key}": { query: NoQuery; body: NoteBody; answer: null };
  "DELETE /marks/{task}/{key}": { query: { note?: string | null }; body: null; answer: null };
  "GET /decisions": { query: { task?: string | null; key?: string | null; reason?: string | null; by?: string | null; since?: string | null; limit?: number }; body: null; answer: GetDecisionsAnswer };
  "GET /stats": { query: { minutes?: number; every?: "all" | "day" | "hour" | "minute"; group_by?: ("origin" | "task")[]; task?: string | null; origin?: string | null }; body: null; answer: GetStatsAnswer };
  "GET /why": { query: { subject: string; key?: string | null }; body: null; answer: Why };
  "GET /audit": { query: { by?: string | null; action?: string | null; subject?: string | null; since?: string | null; until?: string | null; limit?: number; cursor?: string | null }; body: null; answer: GetAuditAnswer };
  "POST /audit/{id}/undo": { query: NoQuery; body: NoteBody; answer: UndoneView };
  "GET /audit/export": { query: { by?: string | null; action?: string | null; subject?: string | null; since?: string | null; until?: string | null }; body: null; answer: string };
  "GET /events": { query: { topics?: string | null; task?: string | null; run?: string | null; flow?: string | null; wait?: number | null }; body: null; answer: string };
  "GET /errors": { query: { task?: string[]; since?: string | null; limit?: number }; body: null; answer: GetErrorsAnswer };
  "GET /scale": { query: { task?: string[]; queue?: string[] }; body: null; answer: Scale };
  "GET /timeline": { query: { from?: string | null; to?: string | null; by?: "schedule" | "task" | "worker"; px?: number; task?: string | null; row_after?: string }; body: null; answer: GetTimelineAnswer };
  "GET /doctor": { query: NoQuery; body: null; answer: GetDoctorAnswer };
}
