"""x"""
def profile_scaled(request, sweep, predict, say):
    from cosim.workload.profiler.launch import profile
    return profile(request, say)
