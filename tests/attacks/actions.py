"""What hostile implementations do: a name, and the body of a function ``harm`` that does it, by what becomes of it.

The source of the adapter imports what these lines use. ``helper`` is a program that lives long and does nothing.
"""

# Exceptions of every kind, and such as cannot be looked at.
RAISES = {
    "ValueError": "raise ValueError('no')",
    "SystemExit 0": "sys.exit(0)",
    "SystemExit text": "sys.exit('a text')",
    "KeyboardInterrupt": "raise KeyboardInterrupt",
    "GeneratorExit": "raise GeneratorExit",
    "StopIteration": "raise StopIteration",
    "BaseException": "raise BaseException('of no kind')",
    "MemoryError": "raise MemoryError('no room')",
    "much memory": "kept.append(bytearray(1 << 46))",
    "endless recursion": "harm()",
    "pytest.skip": "import pytest; pytest.skip('not today')",
    "pytest.exit": "import pytest; pytest.exit('enough')",
    "no text": "raise type('Mute', (Exception,), {'__str__': lambda self: 1 / 0, '__repr__': lambda self: 1 / 0})()",
    "text interrupts": "raise type('Rude', (Exception,), {'__str__': lambda self: (_ for _ in ()).throw(KeyboardInterrupt)})()",
    "text exits": "raise type('Gone', (Exception,), {'__str__': lambda self: os._exit(0)})()",
    "class lies": "raise type('Liar', (Exception,), {'__class__': property(lambda self: 1 / 0)})()",
    "name raises": "raise type('Meta', (type,), {'__name__': property(lambda cls: 1 / 0)})('Odd', (Exception,), {})()",
    "long controls": "raise Exception('\\0\\x1b[31m\\x9b\\u202e\\ud800\\n::error::PWNED\\n' * 100_000)",
    "group": "raise BaseExceptionGroup('many', [KeyboardInterrupt(), SystemExit(3), ValueError()])",
    "causes in a circle": "a, b = ValueError(), ValueError(); a.__cause__, b.__context__ = b, a; raise a",
}

# Ends of the process.
DIES = {
    "os._exit 0": "os._exit(0)",
    "os._exit 1": "os._exit(1)",
    "os._exit 2": "os._exit(2)",
    "os._exit 9": "os._exit(9)",
    "SIGKILL": "os.kill(os.getpid(), signal.SIGKILL)",
    "segmentation fault": "ctypes.string_at(0)",
    "abort": "os.abort()",
    "SIGALRM by a timer": "signal.signal(14, signal.SIG_DFL); signal.setitimer(signal.ITIMER_REAL, 0.001); time.sleep(10)",
    "SIGTERM, heeded": "signal.signal(signal.SIGTERM, signal.SIG_DFL); os.kill(os.getpid(), signal.SIGTERM)",
    "SIGINT, heeded": "signal.signal(signal.SIGINT, signal.SIG_DFL); os.kill(os.getpid(), signal.SIGINT)",
    "SIGHUP, heeded": "signal.signal(signal.SIGHUP, signal.SIG_DFL); os.kill(os.getpid(), signal.SIGHUP)",
    "another program": "os.execv('/bin/true', ['true'])",
    "processor time": "resource.setrlimit(resource.RLIMIT_CPU, (1, 1))\nwhile True: pass",
}

# What never comes back.
HANGS = {
    "endless loop": "while True: pass",
    "loop that sleeps": "while True: time.sleep(0.01)",
    "sleep": "time.sleep(10_000)",
    "sleep that holds the interpreter": "ctypes.PyDLL(None).sleep(10_000)",
    "expression of exponential time": "re.match(r'(a+)+$', 'a' * 60 + 'b')",
    "deadlock": "lock = threading.Lock(); lock.acquire(); lock.acquire()",
    "SIGSTOP": "os.kill(os.getpid(), signal.SIGSTOP)",
    "waits for a helper": "subprocess.run(helper)",
    "waits for a thread": "one = threading.Thread(target=time.sleep, args=(10_000,), daemon=True); one.start(); one.join()",
    "catches what would end it": "while True:\n    try: time.sleep(10_000)\n    except BaseException: pass",
    "reads a pipe": "os.read(os.pipe()[0], 1)",
}

# Processes and threads that it leaves behind, and is right beside.
LEAVES = {
    "forks and goes on": "os.fork()",
    "forks and goes on, waited for": "child = os.fork()\nif child: os.waitpid(child, 0)",
    "forked helper": "if os.fork() == 0:\n    time.sleep(10_000)\n    os._exit(0)",
    "forked helper that ignores signals": (
        "if os.fork() == 0:\n    for one in (1, 2, 15): signal.signal(one, signal.SIG_IGN)\n"
        "    time.sleep(10_000)\n    os._exit(0)"
    ),
    "daemon in a session of its own": (
        "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        time.sleep(10_000)\n    os._exit(0)"
    ),
    "helper that runs on": "subprocess.Popen(helper)",
    "helper in a session of its own": "subprocess.Popen(helper, start_new_session=True)",
    "helper that is terminated": "one = subprocess.Popen(helper); one.terminate(); one.wait()",
    "helper that is interrupted": "one = subprocess.Popen(helper); one.send_signal(signal.SIGINT); one.wait()",
    "thread that never ends": "threading.Thread(target=time.sleep, args=(10_000,)).start()",
    "threads that work": (
        "def work():\n    while True: time.sleep(0.001)\nfor _ in range(2): threading.Thread(target=work, daemon=True).start()"
    ),
}

# Streams and handles.
STREAMS = {
    "closes 0": "os.close(0)",
    "closes 1": "os.close(1)",
    "closes 2": "os.close(2)",
    "closes 0 to 2": "os.closerange(0, 3)",
    "closes 3 to 255": "os.closerange(3, 256)",
    "1 and 2 are None": "sys.stdout = sys.stderr = None",
    "all are None": "sys.stdin = sys.stdout = sys.stderr = sys.__stdout__ = sys.__stderr__ = None",
    "stdout closed": "sys.stdout.close()",
    "stderr closed": "sys.stderr.close()",
    "stdout that raises": "sys.stdout = type('Broken', (), {'write': lambda self, text: 1 / 0, 'flush': lambda self: 1 / 0})()",
    "1 elsewhere": "os.dup2(os.open(os.devnull, os.O_WRONLY), 1)",
    "1 to 0": "os.dup2(0, 1)",
    "no handles left": "resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))",
    "handles used up": "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)); kept.extend(open(os.devnull) for _ in range(80))",
    "no memory left": "resource.setrlimit(resource.RLIMIT_AS, (1 << 20, 1 << 20))",
    "no file may grow": "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))",
    "no processes": "resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))",
}

# State of the process that changes no result of a correct function.
HARMLESS = {
    "np.seterr raises": "np.seterr(all='raise')",
    "prints otherwise": "np.set_printoptions(precision=0, threshold=1, formatter={'all': lambda x: 1 / 0})",
    "another folder": "os.chdir('/')",
    "a folder that goes": "os.makedirs('gone', exist_ok=True); os.chdir('gone'); os.rmdir('../gone')",
    "no environment": "os.environ.clear()",
    "umask": "os.umask(0o777)",
    "its file is gone": "os.path.exists(__file__) and os.remove(__file__)",
    "little recursion": "sys.setrecursionlimit(len(inspect.stack()) + 60)",
    "settrace": "sys.settrace(lambda *a: None)",
    "setprofile": "sys.setprofile(lambda *a: None)",
    "gc off": "gc.disable()",
    "gc frozen": "gc.freeze()",
    "gc often": "gc.set_threshold(1)",
    "seeds": "random.seed(1); np.random.seed(1)",
    "warnings raise": "warnings.simplefilter('error')",
    "locale": "locale.setlocale(locale.LC_ALL, 'C')",
    "signals ignored": "for number in (1, 2, 3, 10, 12, 13, 14, 15, 17): signal.signal(number, signal.SIG_IGN)",
    "excepthook exits": "sys.excepthook = lambda *a: os._exit(3)",
    "sys.exit replaced": "sys.exit = os._exit = lambda *a: None",
    "unraisablehook exits": "sys.unraisablehook = lambda *a: os._exit(3)",
    "switch interval": "sys.setswitchinterval(100)",
    "decimal": "decimal.getcontext().prec = 2",
    "nice": "os.nice(5)",
    "audit hook": "sys.addaudithook(lambda *a: None)",
    "arguments": "sys.argv[:] = ['--version']",
    "integer digits": "sys.set_int_max_str_digits(640)",
    "displayhook": "sys.displayhook = builtins.repr = None",
}

# The same to what the suite itself uses: its results may be lost, nobody else's.
PATCHES = {
    "no search path": "sys.path.clear()",
    "no finders": "sys.meta_path.clear()",
    "np.array": "np.array = np.asarray = None",
    "np.isfinite": "np.isfinite = lambda *a, **k: True",
    "np.abs": "np.abs = np.absolute = lambda x: x * 0",
    "time": "time.monotonic = time.perf_counter = time.time = lambda: 0.0",
    "time.sleep": "time.sleep = lambda seconds: None",
    "json": "json.dumps = json.loads = None",
    "open": "builtins.open = None",
    "print": "builtins.print = None",
    "isinstance": "builtins.isinstance = lambda *a: False",
    "len": "builtins.len = lambda x: 0",
    "no modules": "for name in [n for n in sys.modules if n.startswith(('conformance', 'msgspec'))]: del sys.modules[name]",
    "no numpy": "sys.modules['numpy'] = None",
    "os.write": "os.write = os.read = None",
    "os.getpid": "os.getpid = lambda: 0x7FFFFFFF",
    "threading": "threading.Thread.start = lambda self: None",
    "rounding upwards": "ctypes.CDLL('libm.so.6').fesetround(0x800)",
    "float32 is float16": "np.float32 = np.float16",
    "the suite's verdict": "import conformance.judging.verdict as v; v.judge = None",
}

# Output.
PRINTS = {
    "much": "print('x' * 50_000_000)",
    "much to 2": "os.write(2, b'y' * 5_000_000)",
    "past Python": "os.write(1, b'past Python\\n' * 1000)",
    "controls": "print('\\x1b[31m\\x1b]0;title\\x07\\x9b\\x00\\u202e')",
    "commands": "print('\\n::error::PWNED\\n::set-output name=a::PWNED')",
    "commands past Python": "os.write(1, b'\\n::error::PWNED\\n'); os.write(2, b'\\n::error::PWNED\\n')",
    "bytes": "os.write(1, bytes(range(256)))",
    "warnings": "[warnings.warn(f'number {n}') for n in range(1000)]",
    "half a pair": "os.write(1, b'\\xed\\xa0\\x80')",
}

# Returned in place of an array, as an expression of ``output``, the right one.
RETURNS = {
    "None": "None",
    "text": "'output'",
    "str dtype": "output.astype(str)",
    "bytes dtype": "output.astype('S8')",
    "object dtype": "output.astype(object)",
    "structured dtype": "output.view([('x', output.dtype)])",
    "datetime dtype": "output.astype('M8[s]')",
    "complex": "output.astype(complex)",
    "bool": "output.astype(bool)",
    "0-d": "output.ravel()[0]",
    "number": "float(output.ravel()[0])",
    "huge": "np.broadcast_to(output.ravel()[:1], (1 << 20, 1 << 20))",
    "empty": "output[:0]",
    "generator": "(row for row in output)",
    "list": "output.tolist()",
    "tuple": "(output, output)",
    "coroutine": "(lambda: (yield))()",
    "itself": "attention",
    "type": "np.ndarray",
    "nameless type": "type('Meta', (type,), dict.fromkeys(['__name__', '__repr__'], property(lambda c: 1 / 0)))('Odd', (), {})()",
    "name that exits": "type('Meta', (type,), {'__name__': property(lambda cls: sys.exit(0))})('Odd', (), {})()",
    "array that raises": "type('A', (), {'__array__': lambda self, *a, **k: 1 / 0, 'shape': output.shape})()",
    "array that exits": "type('A', (), {'__array__': lambda self, *a, **k: os._exit(0)})()",
    "array that hangs": "type('A', (), {'__array__': lambda self, *a, **k: time.sleep(10_000)})()",
    "attributes that raise": "type('A', (), {'__getattribute__': lambda self, name: 1 / 0})()",
    "matrix": "np.asmatrix(output.reshape(output.shape[0], -1))",
}
SUBCLASSES = {
    "__len__": "lambda self: -1",
    "__eq__": "lambda self, other: 1 / 0",
    "__array__": "lambda self, *a, **k: 1 / 0",
    "__array_function__": "lambda self, *a, **k: 1 / 0",
    "__array_ufunc__": "lambda self, *a, **k: 1 / 0",
    "__array_finalize__": "lambda self, other: other is None or kept.append(1)",
    "__getitem__": "lambda self, key: 1 / 0",
    "__repr__": "lambda self: os._exit(0)",
    "__del__": "lambda self: 1 / 0",
    "__class__": "property(lambda self: int)",
    "tobytes": "lambda self, *a: b''",
    "astype": "lambda self, *a, **k: self * 0",
}
